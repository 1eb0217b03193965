"""Sections of enums to the model."""

from __future__ import annotations

from dataclasses import dataclass

from msgen.codegen.schema import model, names
from msgen.codegen.schema.errors import Problems
from msgen.codegen.schema.sections.section import Section
from msgen.codegen.schema.texts import did_you_mean, shown

from .evolution import Declared, EvolutionChecker


@dataclass(frozen=True)
class EnumBuilder:
    """Builds the enums of one group."""

    group: str
    evolution: EvolutionChecker
    problems: Problems

    def build(self, section: Section) -> model.Enum:
        names.check_type_name(
            section.name, "enum", self.group, section.place, self.problems
        )
        enum = f"enum {shown(section.name)}"
        declared = [
            Declared(each.name, f"member {shown(each.name)} of {enum}", each)
            for each in section.sections("values")
        ]
        self.evolution.check("member", declared)
        members = self._members(enum, declared)
        if not declared and not section.incomplete("values"):
            self.problems.add(
                section.place_of("values"),
                "empty-enum",
                f"{enum} has no members; add one, such as 'unset: 0'",
            )
        self._check_unknown(enum, section)
        return model.Enum(
            group=self.group,
            name=section.name,
            place=section.place,
            doc=section.text("doc"),
            members=members,
            unknown=section.optional_text("unknown"),
            keys=section.places(),
        )

    def _members(
        self, enum: str, all_declared: list[Declared]
    ) -> tuple[model.EnumMember, ...]:
        members: dict[int, model.EnumMember] = {}
        for declared in all_declared:
            each = declared.section
            names.check_member_name(each.name, enum, each.place, self.problems)
            if "value" not in each:
                continue
            number = each.count("value")
            if number in members:
                self.problems.add(
                    each.place_of("value"),
                    "duplicate-number",
                    f"{declared.what} has the number {number} of '{members[number].name}'; Python "
                    "would merge the two: give it a number of its own",
                )
                continue
            members[number] = model.EnumMember(
                name=each.name,
                place=each.place,
                number=number,
                doc=each.text("doc"),
                since=each.count("since"),
                deprecated=each.flag("deprecated"),
                was=each.optional_text("was"),
                keys=each.places(),
            )
        return tuple(members.values())

    def _check_unknown(self, enum: str, section: Section) -> None:
        unknown = section.optional_text("unknown")
        known = [each.name for each in section.sections("values")]
        if unknown is None or unknown in known or section.incomplete("values"):
            return
        hint = did_you_mean(unknown, known) or "; name one of its members"
        self.problems.add(
            section.place_of("unknown"),
            "unknown-member",
            f"'unknown' of {enum} is {shown(unknown)}, which is no member{hint}",
        )

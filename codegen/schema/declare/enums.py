"""Sections of enums to the model."""

from __future__ import annotations

from msgen.codegen.schema import model, names
from msgen.codegen.schema.errors import Problems
from msgen.codegen.schema.rule import Rule
from msgen.codegen.schema.sections import Section
from msgen.codegen.schema.texts import did_you_mean, shown

from .evolution import Declared, check_evolution


def build_enum(
    group: str, group_section: Section, section: Section, problems: Problems
) -> model.Enum:
    """Build an enum of ``group``; only valid when no problem was found."""
    taken = names.taken_in(group)
    names.check_name("enum", section.name, section.place, problems, taken=taken)
    enum = f"enum {shown(section.name)}"
    declared = [
        Declared(each.name, f"member {shown(each.name)} of {enum}", each)
        for each in section.sections("values")
    ]
    check_evolution(group_section, "member", declared, problems)
    members = _members(enum, declared, problems)
    if not declared and not section.incomplete("values"):
        problems.add(
            section.place_of("values"),
            EMPTY_ENUM,
            f"{enum} has no members; add one, such as 'unset: 0'",
        )
    _check_unknown(enum, section, problems)
    return model.Enum(
        group=group,
        name=section.name,
        place=section.place,
        doc=section.text("doc"),
        members=members,
        unknown=section.optional_text("unknown"),
        keys=section.places(),
    )


def _members(
    enum: str, all_declared: list[Declared], problems: Problems
) -> tuple[model.EnumMember, ...]:
    members: dict[int, model.EnumMember] = {}
    for declared in all_declared:
        each = declared.section
        names.check_name("member", each.name, each.place, problems, enum)
        if "value" not in each:
            continue
        number = each.count("value")
        if number in members:
            problems.add(
                each.place_of("value"),
                DUPLICATE_NUMBER,
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


def _check_unknown(enum: str, section: Section, problems: Problems) -> None:
    unknown = section.optional_text("unknown")
    known = [each.name for each in section.sections("values")]
    if unknown is None or unknown in known or section.incomplete("values"):
        return
    hint = did_you_mean(unknown, known) or "; name one of its members"
    problems.add(
        section.place_of("unknown"),
        UNKNOWN_MEMBER,
        f"'unknown' of {enum} is {shown(unknown)}, which is no member{hint}",
    )


EMPTY_ENUM = Rule(
    "empty-enum",
    "an enum has no members",
    "A field of it could have no value, and Python has no such enum.",
    "add a member, such as `unset: 0`.",
    build_enum,
)
DUPLICATE_NUMBER = Rule(
    "duplicate-number",
    "two members of an enum have one number",
    "Members travel as their numbers, and Python makes one member of two with one number: what is "
    "sent as the second arrives as the first.",
    "give each member a number of its own.",
    _members,
)
UNKNOWN_MEMBER = Rule(
    "unknown-member",
    "`unknown` of an enum names no member of it",
    "A number that this build does not know is read as that member, which has to exist.",
    "name one of the members, or add the one that is named.",
    _check_unknown,
)

"""Sections to model objects: names, numbers, types, defaults and evolution keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from . import model, names
from .defaults import DefaultReader
from .errors import Problems
from .model import Type
from .nodes import Scalar
from .scope import Scope
from .sections import Section, did_you_mean
from .typecheck import TypeChecker, apply_limits

BATCH_FIELD = "data"
"""The one field of a batch message."""

FieldTypes = Mapping[str, tuple[Type, Section]]


@dataclass
class Declarations:
    """Builds the model of every group; built in two passes, since types cross groups.

    The first pass types all fields, the second reads defaults, which may be structs of any group.
    """

    groups: Mapping[str, Section]
    scopes: Mapping[str, Scope]
    problems: Problems
    _types: dict[tuple[str, str], dict[str, tuple[Type, Section]]] = field(
        default_factory=dict
    )

    def build(self) -> dict[str, model.Group]:
        """Return the model of every group; only valid when no problem was found."""
        for name, group in self.groups.items():
            checker = TypeChecker(self.scopes[name], self.problems)
            for key, what in (("structs", "struct"), ("messages", "message")):
                for record in group.sections(key):
                    self._types[name, record.name] = self._field_types(
                        checker, what, record
                    )
        return {
            name: self._group(name, section) for name, section in self.groups.items()
        }

    def _field_types(
        self, checker: TypeChecker, what: str, record: Section
    ) -> dict[str, tuple[Type, Section]]:
        types: dict[str, tuple[Type, Section]] = {}
        for each in record.sections("fields"):
            names.check_field_name(
                each.name,
                f"{what} '{record.name}': field",
                what == "message",
                each.place,
                self.problems,
            )
            type_ = checker.build(each.scalar("type")) if "type" in each else None
            if type_ is not None:
                types[each.name] = (apply_limits(type_, each, self.problems), each)
        return types

    def _group(self, name: str, section: Section) -> model.Group:
        version = section.count("version")
        enums = tuple(
            self._enum(name, each, version) for each in section.sections("enums")
        )
        structs = tuple(
            self._struct(name, each, version) for each in section.sections("structs")
        )
        messages = tuple(
            self._message(name, each, version) for each in section.sections("messages")
        )
        for batch in section.sections("batch"):
            messages += (self._batch(name, batch, messages, version),)
        self._check_tags(messages)
        self._check_processes(section, messages)
        return model.Group(
            name=name,
            place=section.place_of("group"),
            doc=section.text("doc"),
            version=version,
            receiver=section.optional_text("receiver"),
            senders=tuple(each.text for each in section.names("senders")),
            imports=tuple((each.text, each.place) for each in section.names("imports")),
            enums=enums,
            structs=structs,
            messages=messages,
        )

    def _check_processes(
        self, section: Section, messages: tuple[model.Message, ...]
    ) -> None:
        senders = section.names("senders")
        for process in senders:
            names.check_group_name(process.text, "sender", process.place, self.problems)
        if "receiver" in section:
            place = section.place_of("receiver")
            names.check_group_name(
                section.text("receiver"), "receiver", place, self.problems
            )
            if not messages:
                self.problems.add(
                    place,
                    "receiver",
                    f"group '{section.name}' has a receiver but no messages; add messages, or "
                    "remove the receiver of a group that only shares types",
                )
        elif messages or senders:
            self.problems.add(
                section.place_of("messages" if messages else "senders"),
                "receiver",
                f"group '{section.name}' has {'messages' if messages else 'senders'} but no "
                "receiver; add 'receiver: <process>'",
            )

    def _check_tags(self, messages: Iterable[model.Message]) -> None:
        taken: dict[int, model.Message] = {}
        for message in messages:
            other = taken.setdefault(message.tag, message)
            if other is not message:
                free = next(tag for tag in range(257) if tag not in taken)
                self.problems.add(
                    message.place,
                    "duplicate-tag",
                    f"message '{message.name}' has tag {message.tag}, which is the tag of "
                    f"'{other.name}'; tags are unique in a group: take {free}",
                )

    def _struct(self, group: str, section: Section, version: int) -> model.Struct:
        names.check_type_name(
            section.name, "struct", group, section.place, self.problems
        )
        return model.Struct(
            group=group,
            name=section.name,
            place=section.place,
            doc=section.text("doc"),
            fields=self._fields(group, section, version),
        )

    def _message(self, group: str, section: Section, version: int) -> model.Message:
        names.check_type_name(
            section.name, "message", group, section.place, self.problems
        )
        what = f"message '{section.name}'"
        self._check_evolution(what, section, version, ())
        return model.Message(
            group=group,
            name=section.name,
            place=section.place,
            doc=section.text("doc"),
            fields=self._fields(group, section, version),
            tag=section.count("tag"),
            since=section.count("since"),
            deprecated=section.flag("deprecated"),
            was=section.optional_text("was"),
            removed=section.flag("removed"),
        )

    def _batch(
        self,
        group: str,
        section: Section,
        messages: tuple[model.Message, ...],
        version: int,
    ) -> model.Message:
        name = section.text("name")
        if name:
            place = section.place_of("name")
            names.check_type_name(name, "message", group, place, self.problems)
        self._check_evolution("the batch", section, version, ())
        members = [each for each in messages if not each.removed]
        if not members:
            self.problems.add(
                section.place,
                "empty-batch",
                f"batch '{name}' has no other message to hold; add messages or remove the batch",
            )
        options = tuple(model.MessageType(group, each.name) for each in members)
        item = options[0] if len(options) == 1 else model.UnionType(options)
        data = model.Field(
            name=BATCH_FIELD,
            place=section.place,
            type=model.ListType(item),
            doc="The messages, in order.",
        )
        return model.Message(
            group=group,
            name=name,
            place=section.place,
            doc=section.text("doc"),
            fields=(data,),
            tag=section.count("tag"),
            since=section.count("since"),
            deprecated=section.flag("deprecated"),
            was=section.optional_text("was"),
            is_batch=True,
        )

    def _fields(
        self, group: str, record: Section, version: int
    ) -> tuple[model.Field, ...]:
        fields: list[model.Field] = []
        types = self._types[group, record.name]
        siblings = [each.name for each in record.sections("fields")]
        for section in record.sections("fields"):
            what = f"field '{section.name}' of '{record.name}'"
            self._check_evolution(what, section, version, siblings)
            self._check_appended(what, section, fields)
            if section.name in types:
                fields.append(self._field(section, types[section.name][0]))
        return tuple(fields)

    def _field(self, section: Section, type_: Type) -> model.Field:
        default = None
        if "default" in section:
            reader = DefaultReader(
                section.name, self.problems, self._struct_fields, self._member_names
            )
            default = reader.read(section.node("default"), type_)
        return model.Field(
            name=section.name,
            place=section.place,
            type=type_,
            doc=section.text("doc"),
            default=default,
            since=section.count("since"),
            deprecated=section.flag("deprecated"),
            was=section.optional_text("was"),
            removed=section.flag("removed"),
        )

    def _struct_fields(self, ref: model.StructType) -> FieldTypes:
        return self._types[ref.group, ref.name]

    def _member_names(self, ref: model.EnumType) -> tuple[str, ...]:
        symbol = self.scopes[ref.group].symbols[ref.name]
        return tuple(each.name for each in symbol.section.sections("values"))

    def _check_appended(
        self, what: str, section: Section, before: list[model.Field]
    ) -> None:
        since = section.count("since")
        if since > 1 and "default" not in section:
            self.problems.add(
                section.place_of("since"),
                "since-default",
                f"{what} has 'since: {since}' but no default, so a reader cannot fill it in for "
                "an older writer; add 'default:'",
            )
        if before and since < before[-1].since:
            self.problems.add(
                section.place,
                "since-order",
                f"{what} is of version {since} but stands behind '{before[-1].name}' of version "
                f"{before[-1].since}; added fields go to the end: move it or raise its 'since'",
            )

    def _check_evolution(
        self, what: str, section: Section, version: int, siblings: Iterable[str]
    ) -> None:
        since = section.count("since")
        if since > version:
            self.problems.add(
                section.place_of("since"),
                "since-version",
                f"{what} has 'since: {since}', above the group's version {version}; raise the "
                "group's 'version'",
            )
        was = section.optional_text("was")
        if was is not None and (was == section.name or was in siblings):
            clash = "its own name" if was == section.name else "the name of another"
            self.problems.add(
                section.place_of("was"),
                "was-clash",
                f"{what} has 'was: {was}', which is {clash}; 'was' is the name before a rename",
            )

    def _enum(self, group: str, section: Section, version: int) -> model.Enum:
        names.check_type_name(section.name, "enum", group, section.place, self.problems)
        members: dict[int, model.EnumMember] = {}
        sections = section.sections("values")
        siblings = [each.name for each in sections]
        for each in sections:
            what = f"member '{each.name}' of enum '{section.name}'"
            names.check_member_name(
                each.name, f"enum '{section.name}': member", each.place, self.problems
            )
            self._check_evolution(what, each, version, siblings)
            if "value" not in each:
                continue
            number = each.count("value")
            if number in members:
                self.problems.add(
                    each.place,
                    "duplicate-number",
                    f"{what} has the number {number} of '{members[number].name}'; Python would "
                    "merge the two: give it a number of its own",
                )
            members[number] = model.EnumMember(
                name=each.name,
                place=each.place,
                number=number,
                doc=each.text("doc"),
                since=each.count("since"),
                deprecated=each.flag("deprecated"),
                was=each.optional_text("was"),
            )
        unknown = section.optional_text("unknown")
        if unknown is not None and unknown not in siblings:
            hint = did_you_mean(unknown, siblings) or "; name one of its members"
            self.problems.add(
                section.place_of("unknown"),
                "unknown-member",
                f"'unknown' of enum '{section.name}' is '{unknown}', which is no member{hint}",
            )
        if "values" in section and not sections:
            self.problems.add(
                section.place_of("values"),
                "empty-enum",
                f"enum '{section.name}' has no members; add one, such as 'unset: 0'",
            )
        return model.Enum(
            group=group,
            name=section.name,
            place=section.place,
            doc=section.text("doc"),
            members=tuple(members.values()),
            unknown=unknown,
        )


def check_name_collisions(scope: Scope, group: Section, problems: Problems) -> None:
    """Refuse two type names in scope that give the generated functions one name."""
    taken: dict[str, str] = {}
    imports: dict[str, Scalar] = {each.text: each for each in group.names("imports")}
    for symbol in scope.symbols.values():
        other = taken.setdefault(names.snake_case(symbol.name), symbol.name)
        if other != symbol.name:
            local = symbol.group == scope.group
            problems.add(
                symbol.section.place if local else imports[symbol.group].place,
                "name-collision",
                f"types '{other}' and '{symbol.name}' are both "
                f"'{names.snake_case(symbol.name)}' in snake_case, which names the generated "
                "functions; rename one of them",
            )

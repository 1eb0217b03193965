"""Sections to model objects: names, numbers, types, defaults and evolution keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgen.codegen.schema import model, names
from msgen.codegen.schema.errors import Problems
from msgen.codegen.schema.model import Type
from msgen.codegen.schema.sections.section import Section
from msgen.codegen.schema.texts import shown
from msgen.codegen.schema.types.defaults import DefaultReader, FieldTypes
from msgen.codegen.schema.types.resolve import TypeChecker
from msgen.codegen.schema.types.scope import Scope

from .enums import EnumBuilder
from .evolution import Declared, EvolutionChecker
from .limits import apply_limits

BATCH_FIELD = "data"
"""The one field of a batch message."""

TAGS = range(256)


@dataclass
class Declarations:
    """Builds the model of every group; built in two passes, since types cross groups.

    The first pass types all fields, the second reads defaults, which may be structs of any group.
    """

    groups: Mapping[str, Section]
    scopes: Mapping[str, Scope]
    problems: Problems
    _types: dict[tuple[str, str, str], FieldTypes] = field(default_factory=dict)
    """Group, kind and name of a record to its fields; a name may stand for two, wrongly."""

    def build(self) -> dict[str, model.Group]:
        """Return the model of every group; only valid when no problem was found."""
        for name, group in self.groups.items():
            checker = TypeChecker(self.scopes[name], self.problems)
            for record in (*group.sections("structs"), *group.sections("messages")):
                self._types[name, record.kind, record.name] = self._field_types(
                    checker, record
                )
        return {
            name: self._group(name, section) for name, section in self.groups.items()
        }

    def _field_types(self, checker: TypeChecker, record: Section) -> FieldTypes:
        types: dict[str, tuple[Type | None, Section]] = {}
        where = f"{record.kind} {shown(record.name)}"
        for each in record.sections("fields"):
            names.check_field_name(
                each.name,
                where,
                record.kind == "message",
                each.place,
                self.problems,
            )
            type_ = checker.build(each.scalar("type")) if "type" in each else None
            if type_ is not None:
                type_ = apply_limits(type_, each, self.problems)
            types[each.name] = (type_, each)
        return FieldTypes(types, record.incomplete("fields"))

    def _group(self, name: str, section: Section) -> model.Group:
        evolution = EvolutionChecker(section, self.problems)
        enum_builder = EnumBuilder(name, evolution, self.problems)
        enums = tuple(enum_builder.build(each) for each in section.sections("enums"))
        structs = tuple(
            self._struct(name, each, evolution) for each in section.sections("structs")
        )
        messages = tuple(
            self._message(name, each, evolution)
            for each in section.sections("messages")
        )
        for batch in section.sections("batch"):
            messages += (self._batch(name, batch, messages),)
        evolution.check("message", _declared_messages(section))
        self._check_tags(section)
        self._check_processes(section)
        return model.Group(
            name=name,
            place=section.place_of("group"),
            doc=section.text("doc"),
            version=section.count("version"),
            receiver=section.optional_text("receiver"),
            senders=tuple(each.text for each in section.names("senders")),
            imports=tuple((each.text, each.place) for each in section.names("imports")),
            enums=enums,
            structs=structs,
            messages=messages,
            keys=section.places(),
        )

    def _check_processes(self, section: Section) -> None:
        for process in section.names("senders"):
            names.check_group_name(process.text, "sender", process.place, self.problems)
        has_messages = bool(section.sections("messages") or section.sections("batch"))
        if "receiver" in section:
            place = section.place_of("receiver")
            names.check_group_name(
                section.text("receiver"), "receiver", place, self.problems
            )
            if not has_messages and not section.incomplete("messages"):
                self.problems.add(
                    place,
                    "receiver",
                    f"group '{section.name}' has a receiver but no messages; add messages, or "
                    "remove the receiver of a group that only shares types",
                )
        elif not section.incomplete("receiver"):
            for key in ("messages", "batch", "senders"):
                if section.sections(key) or section.names(key):
                    self.problems.add(
                        section.key_place(key),
                        "receiver",
                        f"group '{section.name}' has {'a ' if key == 'batch' else ''}{key} but no "
                        "receiver; add 'receiver: <process>'",
                    )
                    break

    def _check_tags(self, section: Section) -> None:
        tagged = [each for each in _declared_messages(section) if "tag" in each.section]
        used = {each.section.count("tag") for each in tagged}
        free = next((tag for tag in TAGS if tag not in used), None)
        remedy = "all 256 tags are taken" if free is None else f"take {free}"
        taken: dict[int, Declared] = {}
        for each in tagged:
            tag = each.section.count("tag")
            other = taken.setdefault(tag, each)
            if other is not each:
                self.problems.add(
                    each.section.place_of("tag"),
                    "duplicate-tag",
                    f"{each.what} has tag {tag}, which is the tag of {other.what}; tags are "
                    f"unique in a group: {remedy}",
                )

    def _struct(
        self, group: str, section: Section, evolution: EvolutionChecker
    ) -> model.Struct:
        names.check_type_name(
            section.name, "struct", group, section.place, self.problems
        )
        return model.Struct(
            group=group,
            name=section.name,
            place=section.place,
            doc=section.text("doc"),
            fields=self._fields(group, section, evolution),
            keys=section.places(),
        )

    def _message(
        self, group: str, section: Section, evolution: EvolutionChecker
    ) -> model.Message:
        names.check_type_name(
            section.name, "message", group, section.place, self.problems
        )
        return model.Message(
            group=group,
            name=section.name,
            place=section.place,
            doc=section.text("doc"),
            fields=self._fields(group, section, evolution),
            tag=section.count("tag"),
            since=section.count("since"),
            deprecated=section.flag("deprecated"),
            was=section.optional_text("was"),
            removed=section.flag("removed"),
            keys=section.places(),
        )

    def _batch(
        self, group: str, section: Section, messages: tuple[model.Message, ...]
    ) -> model.Message:
        name = section.text("name")
        place = section.place_of("name")
        if name:
            names.check_type_name(name, "message", group, place, self.problems)
        members = [each for each in messages if not each.removed]
        if not members and not self.groups[group].incomplete("messages"):
            self.problems.add(
                place,
                "empty-batch",
                f"{_batch_name(section)} has no other message to hold; add messages or remove "
                "the batch",
            )
        options = tuple(each.type for each in members)
        item = options[0] if len(options) == 1 else model.UnionType(options)
        data = model.Field(
            name=BATCH_FIELD,
            place=place,
            type=model.ListType(item),
            doc="The messages, in order.",
        )
        return model.Message(
            group=group,
            name=name,
            place=place,
            doc=section.text("doc"),
            fields=(data,),
            tag=section.count("tag"),
            since=section.count("since"),
            deprecated=section.flag("deprecated"),
            was=section.optional_text("was"),
            is_batch=True,
            keys=section.places(),
        )

    def _fields(
        self, group: str, record: Section, evolution: EvolutionChecker
    ) -> tuple[model.Field, ...]:
        where = shown(record.name)
        declared = [
            Declared(each.name, f"field {shown(each.name)} of {where}", each)
            for each in record.sections("fields")
        ]
        evolution.check("field", declared)
        evolution.check_appended(declared)
        types = self._types[group, record.kind, record.name].by_name
        fields = []
        for each in declared:
            type_ = types[each.name][0]
            if type_ is not None:
                fields.append(self._field(each, type_))
        return tuple(fields)

    def _field(self, declared: Declared, type_: Type) -> model.Field:
        section = declared.section
        default = None
        if "default" in section:
            reader = DefaultReader(
                declared.what, self.problems, self._struct_fields, self._enum
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
            keys=section.places(),
        )

    def _struct_fields(self, ref: model.StructType) -> FieldTypes:
        return self._types[ref.group, "struct", ref.name]

    def _enum(self, ref: model.EnumType) -> Section:
        return self.scopes[ref.group].symbols[ref.name].section


def _declared_messages(group: Section) -> list[Declared]:
    """Return the messages of a group, the batch last."""
    messages = [
        Declared(each.name, f"message {shown(each.name)}", each)
        for each in group.sections("messages")
    ]
    return messages + [
        Declared(each.text("name"), _batch_name(each), each)
        for each in group.sections("batch")
    ]


def _batch_name(batch: Section) -> str:
    return f"batch {shown(batch.text('name'))}" if "name" in batch else "the batch"

"""Sections to model objects: names, numbers, types, defaults and evolution keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from msgen.codegen.schema import model, names
from msgen.codegen.schema.errors import Place, Problems
from msgen.codegen.schema.model import Type
from msgen.codegen.schema.rule import Rule
from msgen.codegen.schema.sections import Section
from msgen.codegen.schema.texts import shown
from msgen.codegen.schema.types import DefaultReader, FieldTypes, Scope, build_type

from .enums import build_enum
from .evolution import Declared, check_appended, check_evolution
from .limits import apply_limits

BATCH_FIELD = "data"
"""The one field of a batch message."""

TAGS = range(256)

_RecordTypes: TypeAlias = dict[tuple[str, str, str], FieldTypes]
"""Group, kind and name of a record to its fields; a name may stand for two, wrongly."""


def build_groups(
    groups: Mapping[str, Section], scopes: Mapping[str, Scope], problems: Problems
) -> dict[str, model.Group]:
    """Build the model of every group; only valid when no problem was found.

    All fields get their types first, since defaults may be structs of any group.
    """
    types: _RecordTypes = {}
    for name, group in groups.items():
        for record in (*group.sections("structs"), *group.sections("messages")):
            fields = _field_types(record, scopes[name], problems)
            types[name, record.kind, record.name] = fields
    return {
        name: _GroupBuilder(name, group, scopes, types, problems).build()
        for name, group in groups.items()
    }


def _field_types(record: Section, scope: Scope, problems: Problems) -> FieldTypes:
    types: dict[str, tuple[Type | None, Section]] = {}
    where = f"{record.kind} {shown(record.name)}"
    taken = names.MESSAGE_METHODS if record.kind == "message" else None
    for each in record.sections("fields"):
        names.check_name("field", each.name, each.place, problems, where, taken)
        type_ = None
        if "type" in each:
            type_ = build_type(each.scalar("type"), scope, problems)
        if type_ is not None:
            type_ = apply_limits(type_, each, problems)
        types[each.name] = (type_, each)
    return FieldTypes(types, record.incomplete("fields"))


@dataclass(frozen=True)
class _GroupBuilder:
    name: str
    section: Section
    scopes: Mapping[str, Scope]
    types: _RecordTypes
    problems: Problems

    def build(self) -> model.Group:
        section = self.section
        enums = tuple(
            build_enum(self.name, section, each, self.problems)
            for each in section.sections("enums")
        )
        structs = tuple(self._struct(each) for each in section.sections("structs"))
        messages = tuple(self._message(each) for each in section.sections("messages"))
        for batch in section.sections("batch"):
            messages += (self._batch(batch, messages),)
        declared = _declared_messages(section)
        check_evolution(section, "message", declared, self.problems)
        self._check_tags(declared)
        self._check_processes()
        return model.Group(
            name=self.name,
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

    def _check_processes(self) -> None:
        section = self.section
        for process in section.names("senders"):
            names.check_name("sender", process.text, process.place, self.problems)
        has_messages = section.sections("messages") or section.sections("batch")
        if "receiver" in section:
            place = section.place_of("receiver")
            names.check_name("receiver", section.text("receiver"), place, self.problems)
            if not has_messages and not section.incomplete("messages"):
                self.problems.add(
                    place,
                    RECEIVER,
                    f"group '{section.name}' has a receiver but no messages; add messages, or "
                    "remove the receiver of a group that only shares types",
                )
        elif not section.incomplete("receiver"):
            for key in ("messages", "batch", "senders"):
                if section.sections(key) or section.names(key):
                    self.problems.add(
                        section.key_place(key),
                        RECEIVER,
                        f"group '{section.name}' has {'a ' if key == 'batch' else ''}{key} but no "
                        "receiver; add 'receiver: <process>'",
                    )
                    break

    def _check_tags(self, declared: list[Declared]) -> None:
        tagged = [each for each in declared if "tag" in each.section]
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
                    DUPLICATE_TAG,
                    f"{each.what} has tag {tag}, which is the tag of {other.what}; tags are "
                    f"unique in a group: {remedy}",
                )

    def _struct(self, section: Section) -> model.Struct:
        self._check_name("struct", section.name, section.place)
        return model.Struct(
            group=self.name,
            name=section.name,
            place=section.place,
            doc=section.text("doc"),
            fields=self._fields(section),
            keys=section.places(),
        )

    def _message(self, section: Section) -> model.Message:
        self._check_name("message", section.name, section.place)
        fields = self._fields(section)
        return self._tagged(section, section.name, section.place, fields)

    def _tagged(
        self,
        section: Section,
        name: str,
        place: Place,
        fields: tuple[model.Field, ...],
    ) -> model.Message:
        return model.Message(
            group=self.name,
            name=name,
            place=place,
            doc=section.text("doc"),
            fields=fields,
            tag=section.count("tag"),
            since=section.count("since"),
            deprecated=section.flag("deprecated"),
            was=section.optional_text("was"),
            removed=section.flag("removed"),
            is_batch=section.kind == "batch",
            keys=section.places(),
        )

    def _check_name(self, kind: str, name: str, place: Place) -> None:
        taken = names.taken_in(self.name)
        names.check_name(kind, name, place, self.problems, taken=taken)

    def _batch(
        self, section: Section, messages: tuple[model.Message, ...]
    ) -> model.Message:
        name = section.text("name")
        place = section.place_of("name")
        if name:
            self._check_name("message", name, place)
        options = tuple(each.type for each in messages if not each.removed)
        if not options and not self.section.incomplete("messages"):
            self.problems.add(
                place,
                EMPTY_BATCH,
                f"{_batch_name(section)} has no other message to hold; add messages or remove "
                "the batch",
            )
        item = options[0] if len(options) == 1 else model.UnionType(options)
        data = model.Field(
            name=BATCH_FIELD,
            place=place,
            type=model.ListType(item),
            doc="The messages, in order.",
        )
        return self._tagged(section, name, place, (data,))

    def _fields(self, record: Section) -> tuple[model.Field, ...]:
        where = shown(record.name)
        declared = [
            Declared(each.name, f"field {shown(each.name)} of {where}", each)
            for each in record.sections("fields")
        ]
        check_evolution(self.section, "field", declared, self.problems)
        check_appended(declared, self.problems)
        types = self.types[self.name, record.kind, record.name].by_name
        typed = [(each, types[each.name][0]) for each in declared]
        return tuple(
            self._field(each.what, each.section, type_)
            for each, type_ in typed
            if type_ is not None
        )

    def _field(self, what: str, section: Section, type_: Type) -> model.Field:
        default = None
        if "default" in section:
            reader = DefaultReader(
                what, self.problems, self._fields_of_struct, self._section_of_enum
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

    def _fields_of_struct(self, ref: model.StructType) -> FieldTypes:
        return self.types[ref.group, "struct", ref.name]

    def _section_of_enum(self, ref: model.EnumType) -> Section:
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


RECEIVER = Rule(
    "receiver",
    "a group has messages but no receiver, or a receiver but no messages",
    "The receiver is the process that reads the messages. Without it nobody can say whom a change "
    "breaks and which side to upgrade first.",
    "name the process that reads the messages, or remove the receiver of a group that only shares "
    "types.",
    _GroupBuilder._check_processes,
)
DUPLICATE_TAG = Rule(
    "duplicate-tag",
    "two messages of a group have one tag",
    "The tag is what a reader knows a message by: it would decode one as the other.",
    "give one of them a tag that is free. The tag of a removed message stays taken, since old "
    "senders may still write it.",
    _GroupBuilder._check_tags,
)
EMPTY_BATCH = Rule(
    "empty-batch",
    "a batch has no message that it could hold",
    "A batch lists the group's other messages; without one it can only be empty.",
    "add messages to the group, or remove the batch.",
    _GroupBuilder._batch,
)

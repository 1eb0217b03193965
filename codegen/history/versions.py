"""A schema as it was at an older version of its groups, told from the schema of today.

What has a later `since` is left out. Names, docs, defaults and limits are those of today, and what is
removed today is removed: only additions carry the version that they came with.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from msgen.codegen.schema import model
from msgen.codegen.schema.declare import BATCH_FIELD
from msgen.codegen.schema.model import EnumType, MessageType, Type

_Versioned: TypeAlias = model.Message | model.Field | model.EnumMember


def at_version(schema: model.Schema, versions: Mapping[str, int]) -> model.Schema:
    """Return a schema at older versions of its groups.

    A later message or enum member is kept where an older field cannot be without it: as the type of
    the field, its default, or the enum's `unknown`.

    Args:
        versions: group name to the version wanted; groups that are not in it stay as they are.
    """
    return _Past(schema, versions).schema()


class _Past:
    def __init__(self, schema: model.Schema, versions: Mapping[str, int]) -> None:
        self._schema = schema
        self._limits = {
            name: min(versions.get(name, group.version), group.version)
            for name, group in schema.groups.items()
        }
        messages = [m for group in schema.groups.values() for m in group.messages]
        self._messages = {each.type for each in messages if self._is_there(each, each)}
        structs = [s for group in schema.groups.values() for s in group.structs]
        live = (each for each in messages if each.type in self._messages)
        self._keep_needed_messages([*structs, *live])
        self._members: defaultdict[EnumType, set[str]] = defaultdict(set)
        for record in (*structs, *messages):
            self._keep_needed_members(record)

    def schema(self) -> model.Schema:
        groups = {
            name: self._group(group) for name, group in self._schema.groups.items()
        }
        return model.Schema(self._schema.name, groups)

    def _is_there(
        self, thing: _Versioned, declared_in: model.Record | model.Enum
    ) -> bool:
        return thing.since <= self._limits[declared_in.group]

    def _group(self, group: model.Group) -> model.Group:
        kept = [each for each in group.messages if each.type in self._messages]
        plain = [each for each in kept if not each.is_batch]
        options = tuple(each.type for each in plain if not each.removed)
        messages = [replace(each, fields=self._fields(each)) for each in plain]
        if options:
            item = options[0] if len(options) == 1 else model.UnionType(options)
            for batch in (each for each in kept if each.is_batch):
                (data,) = batch.fields
                assert data.name == BATCH_FIELD
                data = replace(data, type=model.ListType(item))
                messages.append(replace(batch, fields=(data,)))
        return replace(
            group,
            version=self._limits[group.name],
            enums=tuple(self._enum(each) for each in group.enums),
            structs=tuple(
                replace(each, fields=self._fields(each)) for each in group.structs
            ),
            messages=tuple(messages),
        )

    def _kept_fields(self, record: model.Record) -> list[model.Field]:
        return [each for each in record.fields if self._is_there(each, record)]

    def _fields(self, record: model.Record) -> tuple[model.Field, ...]:
        return tuple(
            replace(
                each,
                type=self._type(each.type),
                default=each.default and model.Default(self._value(each.default.value)),
            )
            for each in self._kept_fields(record)
        )

    def _type(self, type_: Type) -> Type:
        """Return a type whose unions have lost the messages of later versions."""
        if isinstance(type_, model.UnionType):
            options = tuple(
                self._type(each)
                for each in type_.options
                if not isinstance(each, MessageType) or each in self._messages
            )
            if len(options) == 1:
                return options[0]
            return model.UnionType(options) if options else type_
        if isinstance(type_, (model.ListType, model.NullableType)):
            return replace(type_, item=self._type(type_.item))
        if isinstance(type_, model.TupleType):
            return model.TupleType(tuple(self._type(each) for each in type_.items))
        if isinstance(type_, model.DictType):
            return replace(type_, value=self._type(type_.value))
        return type_

    def _keep_needed_messages(self, todo: list[model.Record]) -> None:
        while todo:
            record = todo.pop()
            if isinstance(record, model.Message) and record.is_batch:
                continue
            for field in self._kept_fields(record):
                for part in model.walk(self._type(field.type)):
                    if isinstance(part, MessageType) and part not in self._messages:
                        self._messages.add(part)
                        todo.append(self._schema.message(part))

    def _value(self, value: model.Value) -> model.Value:
        if isinstance(value, model.StructDefault):
            record = self._schema.record(value.type)
            kept = {each.name for each in self._kept_fields(record)}
            items = ((name, self._value(item)) for name, item in value.fields)
            return replace(
                value, fields=tuple(each for each in items if each[0] in kept)
            )
        if isinstance(value, (list, tuple)):
            return type(value)(map(self._value, value))
        if isinstance(value, dict):
            return {key: self._value(item) for key, item in value.items()}
        return value

    def _enum(self, enum: model.Enum) -> model.Enum:
        needed = self._members[enum.type] | {enum.unknown}
        members = tuple(
            each
            for each in enum.members
            if self._is_there(each, enum) or each.name in needed
        )
        return replace(enum, members=members or enum.members)

    def _keep_needed_members(self, record: model.Record) -> None:
        """Keep the members that defaults name, in every enum that is in the field's type."""
        for field in self._kept_fields(record):
            if field.default is not None:
                names = set(_member_names(self._value(field.default.value)))
                for enum in self._enums_in(field.type, set()):
                    self._members[enum] |= names

    def _enums_in(self, type_: Type, seen: set[Type]) -> Iterator[EnumType]:
        """Yield the enums in a type, those in fields of its structs included."""
        for part in model.walk(type_):
            if isinstance(part, EnumType):
                yield part
            elif isinstance(part, model.StructType) and part not in seen:
                seen.add(part)
                for field in self._schema.record(part).fields:
                    yield from self._enums_in(field.type, seen)


def _member_names(value: model.Value) -> Iterator[str]:
    parts: Iterable[model.Value] = ()
    if isinstance(value, model.EnumDefault):
        yield value.member
    elif isinstance(value, model.StructDefault):
        parts = (item for _, item in value.fields)
    elif isinstance(value, dict):
        parts = (*value.keys(), *value.values())
    elif isinstance(value, (list, tuple)):
        parts = value
    for part in parts:
        yield from _member_names(part)


def parse_versions(texts: tuple[str, ...], schema: model.Schema) -> dict[str, int]:
    """Read `N`, for all groups, and `GROUP=N`.

    Raises:
        ValueError: with what is wrong and what to write.
    """
    versions: dict[str, int] = {}
    for text in texts:
        name, equals, number = text.rpartition("=")
        if not number.isdecimal() or int(number) < 1:
            raise ValueError(
                f"'{text}' is no version; write a number from 1, or GROUP=NUMBER"
            )
        if equals and name not in schema.groups:
            raise ValueError(
                f"there is no group '{name}'; the groups are {', '.join(schema.groups)}"
            )
        groups = [schema.groups[name]] if equals else list(schema.groups.values())
        newest = max(each.version for each in groups)
        if int(number) > newest:
            what = f"group '{name}'" if equals else "the newest group"
            raise ValueError(
                f"version {number} is not there yet: {what} is at version {newest}"
            )
        versions |= {each.name: int(number) for each in groups}
    return versions

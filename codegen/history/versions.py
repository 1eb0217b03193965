"""A schema as it was at an older version of its groups, told from the schema of today.

What has a later `since` is left out. Names, docs, defaults and limits are those of today, and what is
removed today is removed: only additions carry the version that they came with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from msgen.codegen.schema import model
from msgen.codegen.schema.declare import BATCH_FIELD
from msgen.codegen.schema.model import EnumType, MessageType, Type


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
        self._messages = {
            each.type
            for group in schema.groups.values()
            for each in group.messages
            if each.since <= self._limits[group.name]
        }
        self._keep_needed_messages()
        self._members = self._needed_members()

    def schema(self) -> model.Schema:
        groups = {
            name: self._group(group) for name, group in self._schema.groups.items()
        }
        return model.Schema(self._schema.name, groups)

    def _group(self, group: model.Group) -> model.Group:
        messages = tuple(
            replace(each, fields=self._fields(each))
            for each in group.messages
            if each.type in self._messages and not each.is_batch
        )
        batches = (each for each in group.messages if each.is_batch)
        return replace(
            group,
            version=self._limits[group.name],
            enums=tuple(self._enum(each) for each in group.enums),
            structs=tuple(
                replace(each, fields=self._fields(each)) for each in group.structs
            ),
            messages=messages + tuple(self._batches(batches, messages)),
        )

    def _batches(
        self, batches: Iterator[model.Message], messages: tuple[model.Message, ...]
    ) -> Iterator[model.Message]:
        options = tuple(each.type for each in messages if not each.removed)
        for batch in batches:
            if batch.type in self._messages and options:
                item = options[0] if len(options) == 1 else model.UnionType(options)
                (data,) = batch.fields
                assert data.name == BATCH_FIELD
                yield replace(batch, fields=(replace(data, type=model.ListType(item)),))

    def _kept_fields(self, record: model.Record) -> Iterator[model.Field]:
        limit = self._limits[record.group]
        return (each for each in record.fields if each.since <= limit)

    def _fields(self, record: model.Record) -> tuple[model.Field, ...]:
        return tuple(
            replace(
                each, type=self._type(each.type), default=self._default(each.default)
            )
            for each in self._kept_fields(record)
        )

    def _type(self, type_: Type) -> Type:
        """Return a type whose unions have lost the messages of later versions."""
        if isinstance(type_, model.UnionType):
            options = tuple(self._type(each) for each in self._options(type_))
            return options[0] if len(options) == 1 else model.UnionType(options)
        if isinstance(type_, (model.ListType, model.NullableType)):
            return replace(type_, item=self._type(type_.item))
        if isinstance(type_, model.TupleType):
            return model.TupleType(tuple(self._type(each) for each in type_.items))
        if isinstance(type_, model.DictType):
            return replace(type_, value=self._type(type_.value))
        return type_

    def _options(self, union: model.UnionType) -> tuple[Type, ...]:
        kept = tuple(
            each
            for each in union.options
            if not isinstance(each, MessageType) or each in self._messages
        )
        return kept or union.options

    def _keep_needed_messages(self) -> None:
        todo: list[model.Record] = [
            record
            for group in self._schema.groups.values()
            for record in (*group.structs, *group.messages)
            if not isinstance(record, model.Message) or record.type in self._messages
        ]
        while todo:
            record = todo.pop()
            if isinstance(record, model.Message) and record.is_batch:
                continue
            for field in self._kept_fields(record):
                for part in model.walk(self._type(field.type)):
                    if isinstance(part, MessageType) and part not in self._messages:
                        self._messages.add(part)
                        todo.append(self._schema.message(part))

    def _default(self, default: model.Default | None) -> model.Default | None:
        return None if default is None else model.Default(self._value(default.value))

    def _value(self, value: model.Value) -> model.Value:
        if isinstance(value, model.StructDefault):
            kept = {
                each.name for each in self._kept_fields(self._schema.record(value.type))
            }
            fields = tuple(
                (name, self._value(item)) for name, item in value.fields if name in kept
            )
            return replace(value, fields=fields)
        if isinstance(value, list):
            return [self._value(item) for item in value]
        if isinstance(value, tuple):
            return tuple(self._value(item) for item in value)
        if isinstance(value, dict):
            return {key: self._value(item) for key, item in value.items()}
        return value

    def _enum(self, enum: model.Enum) -> model.Enum:
        limit = self._limits[enum.group]
        members = tuple(
            each
            for each in enum.members
            if each.since <= limit
            or each.name == enum.unknown
            or each.name in self._members.get(enum.type, ())
        )
        return replace(enum, members=members or enum.members)

    def _needed_members(self) -> dict[EnumType, set[str]]:
        """Return the members that defaults name, for every enum that is in the field's type."""
        needed: dict[EnumType, set[str]] = {}
        for group in self._schema.groups.values():
            for record in (*group.structs, *group.messages):
                for field in self._kept_fields(record):
                    if field.default is None:
                        continue
                    names = set(_member_names(self._value(field.default.value)))
                    for enum in self._enums_in(field.type):
                        needed.setdefault(enum, set()).update(names)
        return needed

    def _enums_in(self, type_: Type) -> set[EnumType]:
        """Return the enums in a type, those in fields of its structs included."""
        found: set[EnumType] = set()
        seen: set[Type] = set()
        todo = [type_]
        while todo:
            for part in model.walk(todo.pop()):
                if isinstance(part, EnumType):
                    found.add(part)
                elif isinstance(part, model.StructType) and part not in seen:
                    seen.add(part)
                    todo += [each.type for each in self._schema.record(part).fields]
        return found


def _member_names(value: model.Value) -> Iterator[str]:
    if isinstance(value, model.EnumDefault):
        yield value.member
    elif isinstance(value, model.StructDefault):
        for _, item in value.fields:
            yield from _member_names(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _member_names(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _member_names(key)
            yield from _member_names(item)


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

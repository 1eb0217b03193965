"""The default of a field in two versions: as a value that can be compared, and as a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgen.codegen.schema import model
from msgen.codegen.schema.model import Type
from msgen.codegen.schema.rule import WARNING

from .change import Change, ChangeRule
from .pairs import Both, wire_name


def default_changed(
    both: Both[model.Field], old_schema: model.Schema, new_schema: model.Schema
) -> Iterator[Change]:
    old, new = both.old, both.new
    if old.default is None or new.default is None:
        return
    if _value(old_schema, old.default.value, old.type) != _value(
        new_schema, new.default.value, new.type
    ):
        before, now = _spell(old.default.value), _spell(new.default.value)
        text = f"the default of {both.what} is {now}, was {before}"
        yield both.change(DEFAULT_CHANGED, text, before, now, "default")


DEFAULT_CHANGED = ChangeRule(
    "DEFAULT_CHANGED",
    "a field has another default",
    "Defaults are filled in where they are used. Callers that leave the field out send "
    "another value, and messages of writers that lack the field are read with another value, "
    "so old and new readers see one message differently.",
    "keep the default that older writers mean, and set the new value in the callers.",
    finder=default_changed,
    severity=WARNING,
)


def default_removed(
    both: Both[model.Field], old_schema: model.Schema, new_schema: model.Schema
) -> Iterator[Change]:
    if both.old.default is not None and both.new.default is None:
        before = _spell(both.old.default.value)
        text = f"{both.what} has no default any more"
        yield both.change(DEFAULT_REMOVED, text, before, "none", source=True)


DEFAULT_REMOVED = ChangeRule(
    "DEFAULT_REMOVED",
    "a field has no default any more",
    "Callers have to give the field. And it can no longer be removed without breaking those "
    "who read it.",
    "keep the default.",
    finder=default_removed,
    severity=WARNING,
)


def _value(schema: model.Schema, value: model.Value, type_: Type) -> Any:
    """Return a value with the names of members and fields as the fingerprint knows them."""
    if isinstance(type_, model.NullableType):
        return None if value is None else _value(schema, value, type_.item)
    if isinstance(type_, model.UnionType):
        inner = [each for each in type_.options if model.holds_value(each, value)]
        return _value(schema, value, inner[0]) if inner else repr(value)
    if isinstance(value, model.EnumDefault):
        assert isinstance(type_, model.EnumType)
        members = {each.name: each for each in schema.enum(type_).members}
        return wire_name(members[value.member])
    if isinstance(value, model.StructDefault):
        fields = {each.name: each for each in schema.record(value.type).fields}
        return {
            wire_name(fields[name]): _value(schema, item, fields[name].type)
            for name, item in value.fields
        }
    if isinstance(type_, model.ListType) and isinstance(value, list):
        return [_value(schema, item, type_.item) for item in value]
    if isinstance(type_, model.TupleType) and isinstance(value, tuple):
        return tuple(_value(schema, *pair) for pair in zip(value, type_.items))
    if isinstance(type_, model.DictType) and isinstance(value, dict):
        return {
            _value(schema, key, type_.key): _value(schema, item, type_.value)
            for key, item in value.items()
        }
    return repr(value)  # tells 1 from True and 1.0, and nan is nan


def _spell(value: Any) -> str:
    """Write a default much as the schema language does."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, model.EnumDefault):
        return value.member
    if isinstance(value, model.StructDefault):
        return _braces(value.fields)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_spell(item) for item in value)}]"
    if isinstance(value, dict):
        return _braces(value.items())
    return repr(value)


def _braces(items: Iterable[tuple[Any, Any]]) -> str:
    parts = (
        f"{key if isinstance(key, str) else _spell(key)}: {_spell(item)}"
        for key, item in items
    )
    return f"{{{', '.join(parts)}}}"

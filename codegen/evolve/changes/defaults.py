"""Defaults of two versions: as values that can be compared, and as texts."""

from __future__ import annotations

from typing import Any

from msgen.codegen.schema import model
from msgen.codegen.schema.model import Type

from .pairing import wire_name


def same_default(
    old_schema: model.Schema,
    old: model.Field,
    new_schema: model.Schema,
    new: model.Field,
) -> bool:
    """Say whether two defaults, which are both there, stand for one value."""
    assert old.default is not None and new.default is not None
    before = _value(old_schema, old.default.value, old.type)
    return bool(before == _value(new_schema, new.default.value, new.type))


def _value(schema: model.Schema, value: model.Value, type_: Type) -> Any:
    """Return a value with the names of members and fields as the fingerprint knows them."""
    if isinstance(type_, model.NullableType):
        return None if value is None else _value(schema, value, type_.item)
    if isinstance(type_, model.UnionType):
        inner = [each for each in type_.options if model.holds_value(each, value)]
        return _value(schema, value, inner[0]) if inner else repr(value)
    if isinstance(value, model.EnumDefault):
        assert isinstance(type_, model.EnumType)
        return next(
            wire_name(each)
            for each in schema.enum(type_).members
            if each.name == value.member
        )
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


def spell_default(value: Any) -> str:
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
        return f"[{', '.join(spell_default(item) for item in value)}]"
    if isinstance(value, dict):
        return _braces(value.items())
    return repr(value)


def _braces(items: Any) -> str:
    parts = (
        f"{key if isinstance(key, str) else spell_default(key)}: {spell_default(item)}"
        for key, item in items
    )
    return f"{{{', '.join(parts)}}}"

"""What a reader of one version should get from a writer of another, from the models alone.

Things are one thing in both versions when their wire names are equal, or their names are. The
decoders go by position, so this knows what a peer meant where they know only what was written.
"""

from __future__ import annotations

from typing import Any

from building import Built
from msgen.codegen.schema import model
from values import tensor_bytes


class NoValue(Exception):
    """The reader cannot have a right value."""


def tree_of(built: Built, type_: model.Type, value: Any) -> Any:
    """Return a value as plain data; records and enum members name what they are."""
    schema = built.schema
    if isinstance(type_, model.NullableType):
        return None if value is None else tree_of(built, type_.item, value)
    if isinstance(type_, model.UnionType):
        return tree_of(built, _option_of(built, type_, value), value)
    if isinstance(type_, model.ListType):
        return [tree_of(built, type_.item, item) for item in value]
    if isinstance(type_, model.TupleType):
        return ("tuple", [tree_of(built, *pair) for pair in zip(type_.items, value)])
    if isinstance(type_, model.DictType):
        return {
            tree_of(built, type_.key, key): tree_of(built, type_.value, item)
            for key, item in value.items()
        }
    if isinstance(type_, model.EnumType):
        return ("enum", int(value), _member(schema.enum(type_), int(value)))
    if isinstance(type_, (model.StructType, model.MessageType)):
        record = schema.record(type_)
        name = _wire(record) if isinstance(record, model.Message) else ""
        fields = {
            each.name: tree_of(built, each.type, getattr(value, each.name))
            for each in record.live_fields
        }
        return ("record", name, type_, fields)
    if isinstance(type_, model.TensorType):
        return ("tensor", str(value.dtype), tuple(value.shape), tensor_bytes(value))
    return _exact(value)


def _exact(value: Any) -> Any:
    """Tell 1 from True and 1.0, which are equal to Python."""
    if isinstance(value, list):
        return [_exact(item) for item in value]
    if isinstance(value, dict):
        return {key: _exact(item) for key, item in value.items()}
    return value if value is None else (type(value).__name__, value)


def _option_of(built: Built, union: model.UnionType, value: Any) -> model.Type:
    for option in union.options:
        if isinstance(option, (model.EnumType, model.StructType, model.MessageType)):
            cls = getattr(built.module(option.group), option.name)
            if type(value) is cls:
                return option
        elif isinstance(option, model.TensorType):
            if hasattr(value, "dtype"):
                vector = (
                    value.dim() == 1 and str(value.dtype) == f"torch.{option.dtype}"
                )
                if vector or not option.is_vector:
                    return option
        elif type(value) is _CLASSES[type(option)]:
            return option
    raise AssertionError(f"{value!r} is of no alternative of {union}")


_CLASSES: dict[type, type] = {
    model.BoolType: bool,
    model.IntType: int,
    model.FloatType: float,
    model.StrType: str,
    model.BytesType: bytes,
    model.ListType: list,
    model.TupleType: tuple,
    model.DictType: dict,
}


def expected(
    writer: model.Schema, reader: model.Schema, tree: Any, type_: model.Type
) -> Any:
    """Return the tree that a reader of ``type_`` should get for a writer's tree.

    Raises:
        NoValue: there is no right value.
    """
    if isinstance(type_, model.NullableType):
        if tree is None:
            return None
        return expected(writer, reader, tree, type_.item)
    if isinstance(type_, model.UnionType):
        return _expected_option(writer, reader, tree, type_)
    if isinstance(tree, tuple) and tree[0] == "record":
        return _expected_record(writer, reader, tree, type_)
    if isinstance(tree, tuple) and tree[0] == "enum":
        return _expected_member(reader, tree, type_)
    if isinstance(tree, list) and isinstance(type_, model.ListType):
        return [expected(writer, reader, item, type_.item) for item in tree]
    if isinstance(tree, tuple) and tree[0] == "tuple":
        if not isinstance(type_, model.TupleType) or len(type_.items) != len(tree[1]):
            raise NoValue
        items = zip(tree[1], type_.items)
        return ("tuple", [expected(writer, reader, *pair) for pair in items])
    if isinstance(tree, dict) and isinstance(type_, model.DictType):
        return {
            expected(writer, reader, key, type_.key): expected(
                writer, reader, item, type_.value
            )
            for key, item in tree.items()
        }
    return tree


def _expected_option(
    writer: model.Schema, reader: model.Schema, tree: Any, union: model.UnionType
) -> Any:
    kind = tree[0] if isinstance(tree, tuple) else type(tree).__name__
    for option in union.options:
        if kind == "record" and isinstance(option, model.MessageType) == bool(tree[1]):
            if isinstance(option, model.StructType) or (
                isinstance(option, model.MessageType)
                and tree[1] in (_wire(reader.message(option)), option.name)
            ):
                return expected(writer, reader, tree, option)
        elif kind == _TREE_KINDS.get(type(option)):
            return expected(writer, reader, tree, option)
    raise NoValue


_TREE_KINDS: dict[type, str] = {
    model.BoolType: "bool",
    model.IntType: "int",
    model.FloatType: "float",
    model.StrType: "str",
    model.BytesType: "bytes",
    model.ListType: "list",
    model.TupleType: "tuple",
    model.DictType: "dict",
    model.EnumType: "enum",
    model.TensorType: "tensor",
}


def _expected_record(
    writer: model.Schema, reader: model.Schema, tree: Any, type_: model.Type
) -> Any:
    if not isinstance(type_, (model.StructType, model.MessageType)):
        raise NoValue
    _, name, ref, values = tree
    record, theirs = reader.record(type_), writer.record(ref)
    mine = _wire(record) if isinstance(record, model.Message) else ""
    if mine != name and not (
        isinstance(record, model.Message) and ref.name == record.name
    ):
        raise NoValue
    fields = {}
    for field in record.live_fields:
        source = _same(field, theirs)
        if source is not None and not source.removed:
            fields[field.name] = expected(
                writer, reader, values[source.name], field.type
            )
        elif source is not None and isinstance(
            field.type, (model.NullableType, model.AnyType)
        ):
            fields[field.name] = None
        elif field.default is None:
            raise NoValue
        else:
            fields[field.name] = default_tree(reader, field.default.value, field.type)
    return ("record", mine, type_, fields)


def _same(field: model.Field, record: model.Record) -> model.Field | None:
    """Find a field of the other version: by wire name, else by name, else by `was`."""
    tests = (
        lambda each: _wire(each) == _wire(field),
        lambda each: each.name == field.name,
        lambda each: each.name == field.was or each.was == field.name,
    )
    for test in tests:
        for each in record.fields:
            if test(each):
                return each
    return None


def _expected_member(reader: model.Schema, tree: Any, type_: model.Type) -> Any:
    if not isinstance(type_, model.EnumType):
        raise NoValue
    enum = reader.enum(type_)
    for each in enum.members:
        if each.number == tree[1]:
            if {_wire(each), each.name} & set(tree[2]):
                return ("enum", each.number, _member(enum, each.number))
            raise NoValue
    if enum.unknown is None:
        raise NoValue
    number = next(each.number for each in enum.members if each.name == enum.unknown)
    return ("enum", number, _member(enum, number))


def default_tree(schema: model.Schema, value: Any, type_: model.Type) -> Any:
    """Return a default as a tree."""
    if isinstance(type_, model.NullableType):
        return None if value is None else default_tree(schema, value, type_.item)
    if isinstance(value, model.EnumDefault):
        assert isinstance(type_, model.EnumType)
        enum = schema.enum(type_)
        number = next(each.number for each in enum.members if each.name == value.member)
        return ("enum", number, _member(enum, number))
    if isinstance(value, model.StructDefault):
        given = dict(value.fields)
        fields = {}
        for each in schema.record(value.type).live_fields:
            if each.name not in given:
                assert each.default is not None
                given[each.name] = each.default.value
            fields[each.name] = default_tree(schema, given[each.name], each.type)
        return ("record", "", value.type, fields)
    if isinstance(type_, model.ListType):
        return [default_tree(schema, item, type_.item) for item in value]
    if isinstance(type_, model.DictType):
        return {
            default_tree(schema, key, type_.key): default_tree(
                schema, item, type_.value
            )
            for key, item in value.items()
        }
    return _exact(value)


def _wire(thing: Any) -> str:
    return str(thing.was or thing.name)


def _member(enum: model.Enum, number: int) -> tuple[str, str]:
    found = next(each for each in enum.members if each.number == number)
    return (_wire(found), found.name)

"""Default values: YAML nodes to values of a field's type."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from msgen.codegen.schema import model
from msgen.codegen.schema.errors import Problems
from msgen.codegen.schema.model import Type, Value
from msgen.codegen.schema.sections.section import Section
from msgen.codegen.schema.texts import counted, did_you_mean
from msgen.codegen.schema.yaml.nodes import Broken, Node, Scalar, Sequence
from msgen.codegen.schema.yaml.nodes import Mapping as MappingNode

from .default_nodes import (
    FLOAT,
    INTEGER,
    SPECIAL_FLOATS,
    expected,
    is_null,
    is_plain,
    matches,
)

_FLOAT32_MAX = float.fromhex("0x1.fffffep127")
_NEVER_WRITTEN = (model.TensorType, model.MessageType)
"""Types of which a schema cannot write a value."""


@dataclass(frozen=True)
class FieldTypes:
    """The fields of a record; a type is None where it could not be built."""

    by_name: Mapping[str, tuple[Type | None, Section]]
    incomplete: bool
    """Whether the record may have more fields, which could not be read."""


class _Stop(Exception):
    """A problem was reported; the default cannot be built."""


@dataclass(frozen=True)
class DefaultReader:
    """Reads the default of one field.

    ``field`` is how errors call the field; ``struct_fields`` and ``enum`` look up what a type
    names.
    """

    field: str
    problems: Problems
    struct_fields: Callable[[model.StructType], FieldTypes]
    enum: Callable[[model.EnumType], Section]

    def read(self, node: Node, type_: Type) -> model.Default | None:
        """Return the default, or None after reporting why the node is none of ``type_``."""
        try:
            return model.Default(self._value(node, type_))
        except _Stop:
            return None

    def _fail(self, node: Node, rule: str, message: str) -> _Stop:
        self.problems.add(node.place, rule, f"default of {self.field} {message}")
        return _Stop()

    def _wrong(self, node: Node, type_: Type) -> _Stop:
        return self._fail(
            node, "bad-default", f"is {node.shown}; {expected(node, type_)}"
        )

    def _value(self, node: Node, type_: Type) -> Value:
        if isinstance(node, Broken):
            raise _Stop
        if isinstance(type_, model.NullableType):
            return self._nullable(node, type_)
        if isinstance(type_, model.UnionType):
            return self._union(node, type_)
        if isinstance(type_, model.AnyType):
            return self._any(node)
        if isinstance(type_, _NEVER_WRITTEN):
            raise self._fail(
                node,
                "bad-default",
                f"is {node.shown}, and no default can be a {model.spell(type_)}; make the type "
                "nullable and write 'default: null', or remove the default",
            )
        if isinstance(type_, model.StructType):
            return self._struct(node, type_)
        if isinstance(type_, (model.ListType, model.TupleType)):
            return self._items(node, type_)
        if isinstance(type_, model.DictType):
            return self._dict(node, type_)
        if not isinstance(node, Scalar):
            raise self._wrong(node, type_)
        return self._scalar(node, type_)

    def _nullable(self, node: Node, type_: model.NullableType) -> Value:
        if is_plain(node, "null"):
            return None
        if is_null(node):
            raise self._fail(node, "bad-default", f"is {node.shown}; write null")
        if isinstance(type_.item, _NEVER_WRITTEN):
            raise self._fail(
                node,
                "bad-default",
                f"is {node.shown}, and no default can be a {model.spell(type_.item)}; use "
                "'default: null'",
            )
        return self._value(node, type_.item)

    def _scalar(self, node: Scalar, type_: Type) -> Value:
        if isinstance(type_, model.BoolType):
            if node.plain and node.text in ("true", "false"):
                return node.text == "true"
        elif isinstance(type_, model.IntType):
            if node.plain and INTEGER.match(node.text):
                return self._in_range(node, type_)
        elif isinstance(type_, model.FloatType):
            return self._float(node, type_)
        elif isinstance(type_, model.EnumType):
            return self._member(node, type_)
        elif isinstance(type_, (model.StrType, model.BytesType)):
            return self._text(node, type_)
        raise self._wrong(node, type_)

    def _in_range(self, node: Scalar, type_: model.IntType) -> int:
        low, high = model.INT_RANGES[type_.width]
        # Python reads no number of more than some thousand digits.
        if len(node.text) < 22 and low <= int(node.text) <= high:
            return int(node.text)
        raise self._fail(
            node, "bad-default", f"is {node.shown}; {type_.width} holds {low} to {high}"
        )

    def _float(self, node: Scalar, type_: model.FloatType) -> float:
        if node.plain and node.text in SPECIAL_FLOATS:
            value = SPECIAL_FLOATS[node.text]
            if type_.finite:
                raise self._fail(
                    node, "bad-default", f"is {node.shown}; the field is finite"
                )
            return value
        if not node.plain or not FLOAT.match(node.text):
            raise self._wrong(node, type_)
        value = float(node.text)
        if math.isinf(value) or (type_.bits == 32 and abs(value) > _FLOAT32_MAX):
            raise self._fail(
                node,
                "bad-default",
                f"is {node.shown}; it is too large for {model.spell(type_)}",
            )
        return value

    def _member(self, node: Scalar, type_: model.EnumType) -> model.EnumDefault:
        enum = self.enum(type_)
        members = [each.name for each in enum.sections("values")]
        if node.text in members:
            self._check_is_text(node)
            return model.EnumDefault(node.text)
        if enum.incomplete("values"):
            raise _Stop
        if is_null(node):
            raise self._wrong(node, type_)
        hint = (
            did_you_mean(node.text, members)
            or f"; its members are {', '.join(members)}"
        )
        raise self._fail(
            node,
            "bad-default",
            f"is {node.shown}, no member of enum '{type_.name}'{hint}",
        )

    def _text(
        self, node: Scalar, type_: model.StrType | model.BytesType
    ) -> str | bytes:
        self._check_is_text(node)
        value = node.text if isinstance(type_, model.StrType) else node.text.encode()
        self._check_length(node, len(value), type_.max_len)
        return value

    def _check_is_text(self, node: Scalar) -> None:
        implicit = node.implicit()
        if implicit is None:
            return
        if not node.text:
            raise self._fail(
                node, "yaml-implicit", 'is empty; write "" or remove the key'
            )
        raise self._fail(
            node,
            "yaml-implicit",
            f"is {node.shown}, which is {implicit} to YAML; quote it",
        )

    def _check_length(self, node: Node, length: int, limit: int | None) -> None:
        if limit is not None and length > limit:
            raise self._fail(
                node,
                "bad-default",
                f"has length {length}; 'max_len' of the field is {limit}",
            )

    def _items(self, node: Node, type_: model.ListType | model.TupleType) -> Value:
        if not isinstance(node, Sequence):
            raise self._wrong(node, type_)
        if isinstance(type_, model.TupleType):
            if len(node.items) != len(type_.items):
                raise self._fail(
                    node,
                    "bad-default",
                    f"has {counted(len(node.items), 'item')}; {model.spell(type_)} has {len(type_.items)}",
                )
            return tuple(map(self._value, node.items, type_.items))
        self._check_length(node, len(node.items), type_.max_len)
        return [self._value(item, type_.item) for item in node.items]

    def _dict(self, node: Node, type_: model.DictType) -> Value:
        if not isinstance(node, MappingNode):
            raise self._wrong(node, type_)
        self._check_length(node, len(node.entries), type_.max_len)
        if node.entries and not isinstance(
            type_.key, (model.StrType, model.BytesType, model.EnumType)
        ):
            raise self._fail(
                node,
                "bad-default",
                f"of type {model.spell(type_)} can only be empty: YAML keys are strings here",
            )
        value: dict[Value, Value] = {}
        for key, item in node.entries:
            value[self._value(key, type_.key)] = self._value(item, type_.value)
        return value

    def _struct(self, node: Node, type_: model.StructType) -> model.StructDefault:
        if not isinstance(node, MappingNode):
            raise self._wrong(node, type_)
        fields = self.struct_fields(type_)
        given: list[tuple[str, Value]] = []
        for key, item in node.entries:
            field_type = self._struct_field(key, type_, fields)
            given.append((key.text, self._value(item, field_type)))
        present = {key.text for key, _ in node.entries}
        for name, (_, section) in fields.by_name.items():
            has_value = name in present or "default" in section
            if not (has_value or section.flag("removed")) and node.complete:
                if section.incomplete("default"):
                    raise _Stop
                raise self._fail(
                    node,
                    "bad-default",
                    f"leaves out field '{name}' of struct '{type_.name}', "
                    "which has no default of its own",
                )
        return model.StructDefault(type_, tuple(given))

    def _struct_field(
        self, key: Scalar, struct: model.StructType, fields: FieldTypes
    ) -> Type:
        """Return the type of the field that a key of a struct's default names."""
        if key.text in fields.by_name:
            type_, section = fields.by_name[key.text]
            if section.flag("removed"):
                raise self._fail(
                    key,
                    "bad-default",
                    f"has the key {key.shown}; field '{key.text}' of struct '{struct.name}' is "
                    "removed",
                )
            if type_ is None:
                raise _Stop
            return type_
        if fields.incomplete:
            raise _Stop
        live = [
            n for n, (_, each) in fields.by_name.items() if not each.flag("removed")
        ]
        hint = did_you_mean(key.text, live) or (
            f"; its fields are {', '.join(live)}" if live else "; it has no fields"
        )
        raise self._fail(
            key,
            "bad-default",
            f"has the key {key.shown}, no field of struct '{struct.name}'{hint}",
        )

    def _union(self, node: Node, type_: model.UnionType) -> Value:
        for option in type_.options:
            if matches(node, option):
                return self._value(node, option)
        if all(isinstance(option, _NEVER_WRITTEN) for option in type_.options):
            return self._value(node, type_.options[0])
        raise self._wrong(node, type_)

    def _any(self, node: Node) -> Value:
        if isinstance(node, Broken):
            raise _Stop
        if isinstance(node, Sequence):
            return [self._any(item) for item in node.items]
        if isinstance(node, MappingNode):
            return {key.text: self._any(item) for key, item in node.entries}
        for text, value in (("null", None), ("true", True), ("false", False)):
            if is_plain(node, text):
                return value
        for option in (model.IntType("i64"), model.FloatType(64)):
            if matches(node, option):
                return self._scalar(node, option)
        return self._text(node, model.StrType())

"""Default values: YAML nodes to values of a field's type."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from . import model
from .errors import Problems
from .model import Type, Value
from .nodes import Mapping as MappingNode
from .nodes import Node, Scalar, Sequence
from .sections import Section, did_you_mean

_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)\Z")
_FLOAT = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?\Z")
_FLOAT32_MAX = float.fromhex("0x1.fffffep127")
_SPECIAL_FLOATS = {".inf": math.inf, "-.inf": -math.inf, ".nan": math.nan}


class _Stop(Exception):
    """A problem was reported; the default cannot be built."""


@dataclass(frozen=True)
class DefaultReader:
    """Reads the default of one field.

    ``struct_fields`` gives a struct's fields as far as their types are known; ``members`` gives an
    enum's section.
    """

    field: str
    problems: Problems
    struct_fields: Callable[[model.StructType], Mapping[str, tuple[Type, Section]]]
    members: Callable[[model.EnumType], tuple[str, ...]]

    def read(self, node: Node, type_: Type) -> model.Default | None:
        """Return the default, or None after reporting why the node is none of ``type_``."""
        try:
            return model.Default(self._value(node, type_))
        except _Stop:
            return None

    def _fail(self, node: Node, rule: str, message: str) -> _Stop:
        self.problems.add(
            node.place, rule, f"default of field '{self.field}' {message}"
        )
        return _Stop()

    def _wrong(self, node: Node, type_: Type) -> _Stop:
        if isinstance(node, Scalar):
            shown = f"'{node.text}'" if node.text or not node.plain else "empty"
        else:
            shown = "a mapping" if isinstance(node, MappingNode) else "a list"
        return self._fail(
            node,
            "bad-default",
            f"is {shown}; expected {model.spell(type_)}{_example(type_)}",
        )

    def _value(self, node: Node, type_: Type) -> Value:
        if isinstance(type_, model.NullableType):
            if _is_plain(node, "null"):
                return None
            return self._value(node, type_.item)
        if isinstance(type_, model.UnionType):
            return self._union(node, type_)
        if isinstance(type_, model.AnyType):
            return self._any(node)
        if isinstance(type_, (model.TensorType, model.MessageType)):
            raise self._fail(
                node,
                "bad-default",
                f"cannot be a {model.spell(type_)}; make the field nullable "
                "with 'default: null', or remove the default",
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

    def _scalar(self, node: Scalar, type_: Type) -> Value:
        if isinstance(type_, model.BoolType):
            if node.plain and node.text in ("true", "false"):
                return node.text == "true"
        elif isinstance(type_, model.IntType):
            if node.plain and _INTEGER.match(node.text) and len(node.text) < 22:
                return self._in_range(node, int(node.text), type_)
        elif isinstance(type_, model.FloatType):
            return self._float(node, type_)
        elif isinstance(type_, model.EnumType):
            return self._member(node, type_)
        elif isinstance(type_, (model.StrType, model.BytesType)):
            return self._text(node, type_)
        raise self._wrong(node, type_)

    def _in_range(self, node: Scalar, number: int, type_: model.IntType) -> int:
        low, high = model.INT_RANGES[type_.width]
        if low <= number <= high:
            return number
        raise self._fail(
            node, "bad-default", f"is {number}; {type_.width} holds {low} to {high}"
        )

    def _float(self, node: Scalar, type_: model.FloatType) -> float:
        if node.plain and node.text in _SPECIAL_FLOATS:
            value = _SPECIAL_FLOATS[node.text]
            if type_.finite:
                raise self._fail(
                    node, "bad-default", f"is {node.text}; the field is finite"
                )
            return value
        if not node.plain or not _FLOAT.match(node.text):
            raise self._wrong(node, type_)
        value = float(node.text)
        if math.isinf(value) or (type_.bits == 32 and abs(value) > _FLOAT32_MAX):
            raise self._fail(
                node,
                "bad-default",
                f"is {node.text}; it is too large for {model.spell(type_)}",
            )
        return value

    def _member(self, node: Scalar, type_: model.EnumType) -> model.EnumDefault:
        members = self.members(type_)
        if node.text in members:
            return model.EnumDefault(node.text)
        hint = (
            did_you_mean(node.text, members)
            or f"; its members are {', '.join(members)}"
        )
        raise self._fail(
            node,
            "bad-default",
            f"is '{node.text}', no member of enum '{type_.name}'{hint}",
        )

    def _text(
        self, node: Scalar, type_: model.StrType | model.BytesType
    ) -> str | bytes:
        implicit = node.implicit()
        if implicit is not None:
            shown = f"'{node.text}'" if node.text else "empty"
            raise self._fail(
                node,
                "yaml-implicit",
                f"is {shown}, which is {implicit} to YAML; quote it",
            )
        value = node.text if isinstance(type_, model.StrType) else node.text.encode()
        self._check_length(node, len(value), type_.max_len)
        return value

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
                    f"has {len(node.items)} items; {model.spell(type_)} has {len(type_.items)}",
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
            if key.text not in fields or fields[key.text][1].flag("removed"):
                hint = did_you_mean(key.text, fields)
                raise self._fail(
                    key,
                    "bad-default",
                    f"has the key '{key.text}', no field of struct '{type_.name}'{hint}",
                )
            given.append((key.text, self._value(item, fields[key.text][0])))
        present = {key.text for key, _ in node.entries}
        for name, (_, section) in fields.items():
            if (
                name not in present
                and "default" not in section
                and not section.flag("removed")
            ):
                raise self._fail(
                    node,
                    "bad-default",
                    f"leaves out field '{name}' of struct '{type_.name}', "
                    "which has no default of its own",
                )
        return model.StructDefault(type_, tuple(given))

    def _union(self, node: Node, type_: model.UnionType) -> Value:
        for option in type_.options:
            if _matches(node, option):
                return self._value(node, option)
        raise self._wrong(node, type_)

    def _any(self, node: Node) -> Value:
        if isinstance(node, Sequence):
            return [self._any(item) for item in node.items]
        if isinstance(node, MappingNode):
            return {key.text: self._any(item) for key, item in node.entries}
        for text, value in (("null", None), ("true", True), ("false", False)):
            if _is_plain(node, text):
                return value
        for option in (model.IntType("i64"), model.FloatType(64)):
            if _matches(node, option):
                return self._scalar(node, option)
        return self._text(node, model.StrType())


def _is_plain(node: Node, text: str) -> bool:
    return isinstance(node, Scalar) and node.plain and node.text == text


def _matches(node: Node, option: Type) -> bool:
    """Say whether a node looks like an alternative, by its YAML kind alone."""
    if isinstance(node, Sequence):
        return isinstance(option, (model.ListType, model.TupleType))
    if isinstance(node, MappingNode):
        return isinstance(option, (model.DictType, model.StructType))
    if not node.plain:
        return isinstance(option, (model.StrType, model.BytesType, model.EnumType))
    if node.text in ("true", "false"):
        return isinstance(option, model.BoolType)
    if _INTEGER.match(node.text):
        return isinstance(option, (model.IntType, model.FloatType))
    if _FLOAT.match(node.text) or node.text in _SPECIAL_FLOATS:
        return isinstance(option, model.FloatType)
    return isinstance(option, (model.StrType, model.BytesType, model.EnumType))


def _example(type_: Type) -> str:
    examples: dict[type[object], str] = {
        model.BoolType: ", true or false",
        model.IntType: ", a decimal integer without quotes or leading zeros",
        model.FloatType: ", such as 1.0, 1e-5, .inf or .nan",
        model.ListType: ", such as []",
        model.DictType: ", such as {}",
        model.StructType: ", a mapping of its fields such as {}",
    }
    return examples.get(type(type_), "")

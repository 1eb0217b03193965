"""Default values: YAML nodes to values of a field's type."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from msgen.codegen.schema import model
from msgen.codegen.schema.errors import Problems, Reported
from msgen.codegen.schema.model import Type, Value
from msgen.codegen.schema.rule import Rule
from msgen.codegen.schema.sections import YAML_IMPLICIT, Section
from msgen.codegen.schema.texts import counted, did_you_mean
from msgen.codegen.schema.yaml import BOOLEANS, Broken, Node, Scalar, Sequence
from msgen.codegen.schema.yaml import Mapping as MappingNode

_FLOAT = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?\Z")
_SPECIAL_FLOATS = {".inf": math.inf, "-.inf": -math.inf, ".nan": math.nan}
_FLOAT32_MAX = float.fromhex("0x1.fffffep127")
_NEVER_WRITTEN = (model.TensorType, model.MessageType)
"""Types of which a schema cannot write a value."""

_EXAMPLES: dict[type[Type], str] = {
    model.BoolType: ", true or false",
    model.IntType: ", a decimal integer without quotes or leading zeros",
    model.FloatType: ", such as 1.0, 1e-5, .inf or .nan",
    model.ListType: ", such as []",
    model.DictType: ", such as {}",
    model.StructType: ", a mapping of its fields such as {}",
}


@dataclass(frozen=True)
class FieldTypes:
    """The fields of a record; a type is None where it could not be built."""

    by_name: Mapping[str, tuple[Type | None, Section]]
    incomplete: bool
    """Whether the record may have more fields, which could not be read."""


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
        """Return the default, or None after reporting why the node is no value of ``type_``."""
        try:
            return model.Default(self._value(node, type_))
        except Reported:
            return None

    def _fail(self, node: Node, message: str, rule: Rule | None = None) -> Reported:
        text = f"default of {self.field} {message}"
        return self.problems.fail(node.place, rule or BAD_DEFAULT, text)

    def _wrong(self, node: Node, type_: Type) -> Reported:
        if node.is_null:
            nullable = model.spell(model.NullableType(type_))
            remedy = f"; for null, make the type nullable: '{nullable}'"
        else:
            remedy = _EXAMPLES.get(type(type_), "")
        return self._fail(
            node, f"is {node.shown}; expected {model.spell(type_)}{remedy}"
        )

    def _value(self, node: Node, type_: Type) -> Value:
        if isinstance(node, Broken):
            raise Reported
        if isinstance(type_, model.NullableType):
            return self._nullable(node, type_)
        if isinstance(type_, model.UnionType):
            return self._union(node, type_)
        if isinstance(type_, model.AnyType):
            return self._any(node)
        if isinstance(type_, _NEVER_WRITTEN):
            raise self._fail(
                node,
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
        if isinstance(type_, model.IntType):
            return self._integer(node, type_)
        if isinstance(type_, model.FloatType):
            return self._float(node, type_)
        if isinstance(type_, model.EnumType):
            return self._member(node, type_)
        if isinstance(type_, (model.StrType, model.BytesType)):
            return self._text(node, type_)
        if node.plain_text not in BOOLEANS:
            raise self._wrong(node, type_)
        return BOOLEANS[node.plain_text]

    def _nullable(self, node: Node, type_: model.NullableType) -> Value:
        if node.plain_text == "null":
            return None
        if node.is_null:
            raise self._fail(node, f"is {node.shown}; write null")
        if isinstance(type_.item, _NEVER_WRITTEN):
            raise self._fail(
                node,
                f"is {node.shown}, and no default can be a {model.spell(type_.item)}; use "
                "'default: null'",
            )
        return self._value(node, type_.item)

    def _union(self, node: Node, type_: model.UnionType) -> Value:
        for option in type_.options:
            if isinstance(option, _looks_like(node)):
                return self._value(node, option)
        if all(isinstance(option, _NEVER_WRITTEN) for option in type_.options):
            return self._value(node, type_.options[0])
        raise self._wrong(node, type_)

    def _any(self, node: Node) -> Value:
        if isinstance(node, Broken):
            raise Reported
        if isinstance(node, Sequence):
            return [self._any(item) for item in node.items]
        if isinstance(node, MappingNode):
            return {key.text: self._any(item) for key, item in node.entries}
        if node.plain_text == "null":
            return None
        option: Type
        for option in (model.BoolType(), model.IntType("i64"), model.FloatType(64)):
            if isinstance(option, _looks_like(node)):
                return self._value(node, option)
        return self._text(node, model.StrType())

    def _integer(self, node: Scalar, type_: model.IntType) -> int:
        if not node.is_integer:
            raise self._wrong(node, type_)
        low, high = model.INT_RANGES[type_.width]
        number = node.integer(low, high)
        if number is None:
            raise self._fail(
                node, f"is {node.shown}; {type_.width} holds {low} to {high}"
            )
        return number

    def _float(self, node: Scalar, type_: model.FloatType) -> float:
        special = _SPECIAL_FLOATS.get(node.plain_text)
        if special is not None:
            if type_.finite:
                raise self._fail(node, f"is {node.shown}; the field is finite")
            return special
        if not _FLOAT.match(node.plain_text):
            raise self._wrong(node, type_)
        value = float(node.text)
        if math.isinf(value) or (type_.bits == 32 and abs(value) > _FLOAT32_MAX):
            too_large = f"is {node.shown}; it is too large for {model.spell(type_)}"
            raise self._fail(node, too_large)
        return value

    def _member(self, node: Scalar, type_: model.EnumType) -> model.EnumDefault:
        enum = self.enum(type_)
        members = [each.name for each in enum.sections("values")]
        if node.text in members:
            self._check_is_text(node)
            return model.EnumDefault(node.text)
        if enum.incomplete("values"):
            raise Reported
        if node.is_null:
            raise self._wrong(node, type_)
        hint = (
            did_you_mean(node.text, members)
            or f"; its members are {', '.join(members)}"
        )
        raise self._fail(
            node, f"is {node.shown}, no member of enum '{type_.name}'{hint}"
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
        text = f"is {node.shown}, which is {implicit} to YAML; quote it"
        if not node.text:
            text = 'is empty; write "" or remove the key'
        raise self._fail(node, text, YAML_IMPLICIT)

    def _check_length(self, node: Node, length: int, limit: int | None) -> None:
        if limit is not None and length > limit:
            raise self._fail(
                node, f"has length {length}; 'max_len' of the field is {limit}"
            )

    def _items(self, node: Node, type_: model.ListType | model.TupleType) -> Value:
        if not isinstance(node, Sequence):
            raise self._wrong(node, type_)
        if isinstance(type_, model.TupleType):
            if len(node.items) != len(type_.items):
                raise self._fail(
                    node,
                    f"has {counted(len(node.items), 'item')}; {model.spell(type_)} has "
                    f"{len(type_.items)}",
                )
            return tuple(map(self._value, node.items, type_.items))
        self._check_length(node, len(node.items), type_.max_len)
        return [self._value(item, type_.item) for item in node.items]

    def _dict(self, node: Node, type_: model.DictType) -> Value:
        if not isinstance(node, MappingNode):
            raise self._wrong(node, type_)
        self._check_length(node, len(node.entries), type_.max_len)
        texts = (model.StrType, model.BytesType, model.EnumType)
        if node.entries and not isinstance(type_.key, texts):
            raise self._fail(
                node,
                f"of type {model.spell(type_)} can only be empty: YAML keys are strings here",
            )
        return {
            self._value(key, type_.key): self._value(item, type_.value)
            for key, item in node.entries
        }

    def _struct(self, node: Node, type_: model.StructType) -> model.StructDefault:
        if not isinstance(node, MappingNode):
            raise self._wrong(node, type_)
        fields = self.struct_fields(type_)
        given: dict[str, Value] = {}
        for key, item in node.entries:
            field_type = self._struct_field(key, type_, fields)
            given[key.text] = self._value(item, field_type)
        for name, (_, section) in fields.by_name.items():
            has_value = name in given or "default" in section
            if not (has_value or section.flag("removed")) and node.complete:
                if section.incomplete("default"):
                    raise Reported
                raise self._fail(
                    node,
                    f"leaves out field '{name}' of struct '{type_.name}', "
                    "which has no default of its own",
                )
        return model.StructDefault(type_, tuple(given.items()))

    def _struct_field(
        self, key: Scalar, struct: model.StructType, fields: FieldTypes
    ) -> Type:
        """Return the type of the field that a key of a struct's default names."""
        if key.text in fields.by_name:
            type_, section = fields.by_name[key.text]
            if section.flag("removed"):
                raise self._fail(
                    key,
                    f"has the key {key.shown}; field '{key.text}' of struct '{struct.name}' is "
                    "removed",
                )
            if type_ is None:
                raise Reported
            return type_
        if fields.incomplete:
            raise Reported
        live = [
            n for n, (_, each) in fields.by_name.items() if not each.flag("removed")
        ]
        hint = did_you_mean(key.text, live) or (
            f"; its fields are {', '.join(live)}" if live else "; it has no fields"
        )
        raise self._fail(
            key, f"has the key {key.shown}, no field of struct '{struct.name}'{hint}"
        )


def _looks_like(node: Node) -> tuple[type[Type], ...]:
    """Return the types of which a node may be a value, by its YAML kind alone."""
    if isinstance(node, Sequence):
        return model.ListType, model.TupleType
    if isinstance(node, MappingNode):
        return model.DictType, model.StructType
    if node.plain_text in BOOLEANS:
        return (model.BoolType,)
    if isinstance(node, Scalar) and node.is_integer:
        return model.IntType, model.FloatType
    if _FLOAT.match(node.plain_text) or node.plain_text in _SPECIAL_FLOATS:
        return (model.FloatType,)
    return model.StrType, model.BytesType, model.EnumType


BAD_DEFAULT = Rule(
    "bad-default",
    "a default is not a value of its field's type",
    "Whoever leaves the field out would send a value that every reader refuses.",
    "write a value of the type, or change the type: `T?` for null, a greater `max_len`, a wider "
    "number. Tensors and messages can only be null.",
    DefaultReader.read,
)

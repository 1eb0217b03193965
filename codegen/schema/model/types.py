"""The types that fields have, their parts, and how the schema language writes them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeAlias

INT_RANGES: dict[str, tuple[int, int]] = {
    **{f"i{bits}": (-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"u{bits}": (0, (1 << bits) - 1) for bits in (8, 16, 32, 64)},
}
"""Width name to smallest and largest value."""

DTYPES: tuple[str, ...] = (
    "bool",
    *("uint8", "uint16", "uint32", "uint64"),
    *("int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64"),
    *("complex64", "complex128"),
    *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"),
    "float8_e8m0fnu",
)
"""Tensor dtypes by their torch names."""


@dataclass(frozen=True)
class BoolType:
    pass


@dataclass(frozen=True)
class IntType:
    width: str
    """A key of INT_RANGES."""


@dataclass(frozen=True)
class FloatType:
    bits: int
    finite: bool = False


@dataclass(frozen=True)
class StrType:
    max_len: int | None = None
    """Most characters, None without a limit."""


@dataclass(frozen=True)
class BytesType:
    max_len: int | None = None


@dataclass(frozen=True)
class AnyType:
    """A plain value: nil, bool, int, float, str, bytes, lists and str-keyed dicts of them."""


@dataclass(frozen=True)
class ListType:
    item: Type
    max_len: int | None = None


@dataclass(frozen=True)
class TupleType:
    items: tuple[Type, ...]


@dataclass(frozen=True)
class DictType:
    key: Type
    value: Type
    max_len: int | None = None


@dataclass(frozen=True)
class NullableType:
    item: Type


@dataclass(frozen=True)
class UnionType:
    """Alternatives told apart by msgpack kind; messages of the group among them by tag."""

    options: tuple[Type, ...]


@dataclass(frozen=True)
class TensorType:
    dtype: str
    """A name of DTYPES, or `any`."""
    dims: tuple[int | str, ...] | None
    """Sizes, symbols and `_` for any size; None for any rank."""
    max_len: int | None = None
    """Most elements, None without a limit."""
    device: str | None = None

    @property
    def is_vector(self) -> bool:
        """Rank 1 and a fixed dtype: the payload travels alone, without its dimensions."""
        return self.dtype != "any" and self.dims is not None and len(self.dims) == 1


@dataclass(frozen=True)
class _Reference:
    """A type that a group declares, by its name there."""

    group: str
    name: str


class StructType(_Reference):
    pass


class EnumType(_Reference):
    pass


class MessageType(_Reference):
    pass


Type: TypeAlias = (
    BoolType
    | IntType
    | FloatType
    | StrType
    | BytesType
    | AnyType
    | ListType
    | TupleType
    | DictType
    | NullableType
    | UnionType
    | TensorType
    | StructType
    | EnumType
    | MessageType
)


def children(type_: Type) -> tuple[Type, ...]:
    """Return the types that a type is directly made of."""
    if isinstance(type_, (ListType, NullableType)):
        return (type_.item,)
    if isinstance(type_, TupleType):
        return type_.items
    if isinstance(type_, DictType):
        return (type_.key, type_.value)
    if isinstance(type_, UnionType):
        return type_.options
    return ()


@cache
def walk(type_: Type) -> tuple[Type, ...]:
    """Return a type and all types inside it, not entering structs and messages."""
    return (type_, *(part for child in children(type_) for part in walk(child)))


def with_parts(type_: Type, kind: type[Type], **changes: Any) -> Type:
    """Return the type with every part of one kind changed; keys of dicts stay."""

    def changed(part: Type) -> Type:
        return with_parts(part, kind, **changes)

    if isinstance(type_, kind):
        return replace(type_, **changes)
    if isinstance(type_, (ListType, NullableType)):
        return replace(type_, item=changed(type_.item))
    if isinstance(type_, DictType):
        return replace(type_, value=changed(type_.value))
    if isinstance(type_, TupleType):
        return TupleType(tuple(map(changed, type_.items)))
    if isinstance(type_, UnionType):
        return UnionType(tuple(map(changed, type_.options)))
    return type_


def spell(type_: Type) -> str:
    """Write a type as the schema language does."""
    if isinstance(type_, NullableType):
        inner = spell(type_.item)
        return f"({inner})?" if isinstance(type_.item, UnionType) else f"{inner}?"
    if isinstance(type_, UnionType):
        return " | ".join(spell(option) for option in type_.options)
    if isinstance(type_, ListType):
        return f"list[{spell(type_.item)}]"
    if isinstance(type_, TupleType):
        return f"tuple[{', '.join(spell(item) for item in type_.items)}]"
    if isinstance(type_, DictType):
        return f"dict[{spell(type_.key)}, {spell(type_.value)}]"
    if isinstance(type_, TensorType):
        dims = ("*",) if type_.dims is None else type_.dims
        return f"tensor[{', '.join(map(str, (type_.dtype, *dims)))}]"
    if isinstance(type_, _Reference):
        return type_.name
    if isinstance(type_, IntType):
        return "int" if type_.width == "i64" else type_.width
    if isinstance(type_, FloatType):
        return "float" if type_.bits == 64 else "f32"
    return {BoolType: "bool", StrType: "str", BytesType: "bytes", AnyType: "any"}[
        type(type_)
    ]

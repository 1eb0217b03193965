"""The checked model of a schema: frozen, and valid once it is built.

`schema_loader.load_schema` is the only maker of these objects. Nothing in here is optional that
validation has already ruled out, so later stages never check again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, TypeAlias

from .errors import KeyPlaces, Place

INT_RANGES: dict[str, tuple[int, int]] = {
    **{f"i{bits}": (-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"u{bits}": (0, (1 << bits) - 1) for bits in (8, 16, 32, 64)},
}
"""Width name to smallest and largest value."""

DTYPES: tuple[str, ...] = (
    "bool",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
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
class StructType:
    group: str
    name: str


@dataclass(frozen=True)
class EnumType:
    group: str
    name: str


@dataclass(frozen=True)
class MessageType:
    group: str
    name: str


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


@dataclass(frozen=True)
class EnumDefault:
    """A default that is a member of an enum."""

    member: str


@dataclass(frozen=True)
class StructDefault:
    """A default that is a struct: the fields given, the others at their own defaults."""

    type: StructType
    fields: tuple[tuple[str, Value], ...]


Value: TypeAlias = (
    bool
    | int
    | float
    | str
    | bytes
    | list["Value"]
    | tuple["Value", ...]
    | dict["Value", "Value"]
    | EnumDefault
    | StructDefault
    | None
)


@dataclass(frozen=True)
class Default:
    """A declared default; its own class, since None is a value that a default can have."""

    value: Value


@dataclass(frozen=True)
class Field:
    name: str
    place: Place
    type: Type
    doc: str = ""
    default: Default | None = None
    since: int = 1
    deprecated: bool = False
    was: str | None = None
    removed: bool = False
    keys: KeyPlaces = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class Struct:
    group: str
    name: str
    place: Place
    doc: str
    fields: tuple[Field, ...]
    keys: KeyPlaces = field(default=(), compare=False, repr=False, kw_only=True)

    @property
    def type(self) -> StructType | MessageType:
        return StructType(self.group, self.name)

    @property
    def live_fields(self) -> tuple[Field, ...]:
        """The fields that a Python class has: all but the removed ones."""
        return tuple(each for each in self.fields if not each.removed)


@dataclass(frozen=True)
class Message(Struct):
    tag: int = 0
    since: int = 1
    deprecated: bool = False
    was: str | None = None
    removed: bool = False
    is_batch: bool = False

    @property
    def type(self) -> MessageType:
        return MessageType(self.group, self.name)


Record: TypeAlias = Struct
"""What has fields: a struct, or a message, which is a struct with a tag."""

RecordKey: TypeAlias = tuple[str, str]
"""Group and name of a record."""


@dataclass(frozen=True)
class EnumMember:
    name: str
    place: Place
    number: int
    doc: str = ""
    since: int = 1
    deprecated: bool = False
    was: str | None = None
    keys: KeyPlaces = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class Enum:
    group: str
    name: str
    place: Place
    doc: str
    members: tuple[EnumMember, ...]
    unknown: str | None
    """The member that receives numbers which this build does not know."""
    keys: KeyPlaces = field(default=(), compare=False, repr=False)

    @property
    def type(self) -> EnumType:
        return EnumType(self.group, self.name)


@dataclass(frozen=True)
class Group:
    name: str
    place: Place
    doc: str
    version: int
    receiver: str | None
    """The process that reads the messages; None for a group of shared types only."""
    senders: tuple[str, ...]
    imports: tuple[tuple[str, Place], ...]
    enums: tuple[Enum, ...]
    structs: tuple[Struct, ...]
    messages: tuple[Message, ...]
    """Every message in file order, the batch last; removed ones included."""
    keys: KeyPlaces = field(default=(), compare=False, repr=False)

    @property
    def live_messages(self) -> tuple[Message, ...]:
        return tuple(each for each in self.messages if not each.removed)

    @property
    def records(self) -> tuple[Struct, ...]:
        """Structs and messages: everything that has fields and a class."""
        return (*self.structs, *self.live_messages)


@dataclass(frozen=True)
class Schema:
    """All groups of a schema folder, by name, in order of name."""

    name: str
    """The folder's own name, as it stands in the header of generated files."""
    groups: Mapping[str, Group] = field(default_factory=dict)

    @cached_property
    def _structs(self) -> dict[tuple[str, str], Struct]:
        return {(g.name, s.name): s for g in self.groups.values() for s in g.structs}

    @cached_property
    def _messages(self) -> dict[tuple[str, str], Message]:
        return {(g.name, m.name): m for g in self.groups.values() for m in g.messages}

    @cached_property
    def _enums(self) -> dict[tuple[str, str], Enum]:
        return {(g.name, e.name): e for g in self.groups.values() for e in g.enums}

    def record(self, ref: StructType | MessageType) -> Struct:
        """Return the struct or message that a type names."""
        found = self._messages if isinstance(ref, MessageType) else self._structs
        return found[ref.group, ref.name]

    def message(self, ref: MessageType) -> Message:
        return self._messages[ref.group, ref.name]

    def enum(self, ref: EnumType) -> Enum:
        return self._enums[ref.group, ref.name]


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
    if isinstance(type_, kind):
        return replace(type_, **changes)
    if isinstance(type_, (ListType, NullableType)):
        return replace(type_, item=with_parts(type_.item, kind, **changes))
    if isinstance(type_, TupleType):
        return TupleType(
            tuple(with_parts(item, kind, **changes) for item in type_.items)
        )
    if isinstance(type_, UnionType):
        return UnionType(
            tuple(with_parts(option, kind, **changes) for option in type_.options)
        )
    if isinstance(type_, DictType):
        return replace(type_, value=with_parts(type_.value, kind, **changes))
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
    if isinstance(type_, (StructType, EnumType, MessageType)):
        return type_.name
    if isinstance(type_, IntType):
        return "int" if type_.width == "i64" else type_.width
    if isinstance(type_, FloatType):
        return "float" if type_.bits == 64 else "f32"
    return {BoolType: "bool", StrType: "str", BytesType: "bytes", AnyType: "any"}[
        type(type_)
    ]

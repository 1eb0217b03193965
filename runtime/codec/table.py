"""The description table: what a message is made of, as plain data.

Generated modules hold one `Record` per struct and message. The compiled engine, the table codec and
tools read it; generated functions do the same work without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Bool:
    def __str__(self) -> str:
        return "bool"


@dataclass(frozen=True)
class Int:
    width: str
    """`i8` to `i64` or `u8` to `u64`."""

    @property
    def limits(self) -> tuple[int, int]:
        """Smallest and largest value."""
        bits = int(self.width[1:])
        if self.width[0] == "u":
            return 0, (1 << bits) - 1
        return -(1 << bits - 1), (1 << bits - 1) - 1

    def __str__(self) -> str:
        return f"int ({self.width})"


@dataclass(frozen=True)
class Float:
    bits: int
    finite: bool = False

    def __str__(self) -> str:
        return f"{'finite ' if self.finite else ''}float (f{self.bits})"


@dataclass(frozen=True)
class Str:
    max_len: int | None = None

    def __str__(self) -> str:
        return "str"


@dataclass(frozen=True)
class Bytes:
    max_len: int | None = None

    def __str__(self) -> str:
        return "bytes"


@dataclass(frozen=True)
class Plain:
    """The schema's `any`."""

    def __str__(self) -> str:
        return "a plain value"


@dataclass(frozen=True)
class List:
    item: Type
    max_len: int | None = None

    def __str__(self) -> str:
        return f"list of {self.item}"


@dataclass(frozen=True)
class Tuple:
    items: tuple[Type, ...]

    def __str__(self) -> str:
        return f"tuple of ({', '.join(map(str, self.items))})"


@dataclass(frozen=True)
class Dict:
    key: Type
    value: Type
    max_len: int | None = None

    def __str__(self) -> str:
        return f"dict of {self.key} to {self.value}"


@dataclass(frozen=True)
class Nullable:
    item: Type

    def __str__(self) -> str:
        return f"{self.item} or None"


@dataclass(frozen=True)
class Union:
    options: tuple[Type, ...]

    def __str__(self) -> str:
        shown = [str(option) for option in self.options[:MOST_SHOWN]]
        more = len(self.options) - len(shown)
        return " or ".join([*shown, f"{more} more"] if more else shown)


@dataclass(frozen=True)
class Enum:
    cls: type[Any]
    unknown: Any = None
    """The member that receives numbers which this build does not know."""

    def __str__(self) -> str:
        return self.cls.__name__


@dataclass(frozen=True)
class Struct:
    cls: type[Any]

    def __str__(self) -> str:
        return self.cls.__name__


@dataclass(frozen=True)
class Message:
    cls: type[Any]

    def __str__(self) -> str:
        return self.cls.__name__


@dataclass(frozen=True)
class Tensor:
    dtype: str
    """A torch dtype's name, or `any`."""
    dims: tuple[int | str, ...] | None
    """Sizes, symbols and `_`; None for any rank."""
    max_len: int | None = None
    """Most elements."""
    device: str | None = None

    @property
    def shape(self) -> tuple[int | None, ...] | None:
        """The sizes that it fixes, None for any size; None for any rank."""
        if self.dims is None:
            return None
        return tuple(dim if isinstance(dim, int) else None for dim in self.dims)

    @property
    def is_vector(self) -> bool:
        """Fixed dtype and rank 1: on the wire as the payload alone."""
        return self.dtype != "any" and self.dims is not None and len(self.dims) == 1

    def __str__(self) -> str:
        dims = ("*",) if self.dims is None else self.dims
        return f"tensor[{', '.join(map(str, (self.dtype, *dims)))}]"


MOST_SHOWN = 6
"""Alternatives that a union's text names."""

Type: TypeAlias = (
    Bool
    | Int
    | Float
    | Str
    | Bytes
    | Plain
    | List
    | Tuple
    | Dict
    | Nullable
    | Union
    | Enum
    | Struct
    | Message
    | Tensor
)


@dataclass(frozen=True)
class Field:
    name: str
    type: Type
    default: Callable[[], Any] | None = None
    """Makes a fresh default; None where the field has none."""
    since: int = 1
    removed: bool = False

    @property
    def takes_nil(self) -> bool:
        """Whether nil is a value of its type, and not the sign for its default."""
        return isinstance(self.type, (Nullable, Plain))


@dataclass(frozen=True)
class Record:
    """A struct, or a message where it has a tag."""

    name: str
    fields: tuple[Field, ...]
    tag: int | None = None
    recursive: bool = False
    """Can stand inside itself, so its depth is limited."""

    @property
    def live_fields(self) -> tuple[Field, ...]:
        return tuple(each for each in self.fields if not each.removed)


Records: TypeAlias = dict[type, Record]


@dataclass(frozen=True)
class Former:
    """A layout that the group had in a release, and how this one differs from it."""

    fingerprint: str
    label: str
    difference: str


def inner(type_: Type) -> tuple[Type, ...]:
    """Return the types that a type is made of."""
    if isinstance(type_, (List, Nullable)):
        return (type_.item,)
    if isinstance(type_, Tuple):
        return type_.items
    if isinstance(type_, Union):
        return type_.options
    if isinstance(type_, Dict):
        return (type_.key, type_.value)
    return ()


def parts(type_: Type) -> tuple[Type, ...]:
    """Return a type and everything inside it, not entering structs and messages."""
    return (type_, *(part for each in inner(type_) for part in parts(each)))

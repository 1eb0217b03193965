"""Values that a schema writes: the defaults of fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from .types import DictType, EnumType, ListType, StructType, TupleType, Type


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


def holds_value(type_: Type, value: Value) -> bool:
    """Say whether an alternative of a union is the one that a default of the union belongs to.

    Only of alternatives that defaults have classes of their own for: no two others are told apart.
    """
    if isinstance(value, StructDefault):
        return type_ == value.type
    kinds: dict[type[Type], type[object]] = {
        EnumType: EnumDefault,
        ListType: list,
        TupleType: tuple,
        DictType: dict,
    }
    kind = kinds.get(type(type_))
    return kind is not None and isinstance(value, kind)

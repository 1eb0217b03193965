"""Dimension symbols of two versions: which sizes a reader wants equal, and a writer keeps equal.

Names of symbols mean nothing to a peer. What counts is which dimensions of one message share one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

from msgen.codegen.schema import model
from msgen.codegen.schema.model import Type

_Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True)
class _Dim:
    """A dimension of a tensor in a record; ``many`` where a value may hold several of the tensor."""

    path: _Path
    size: int | str
    many: bool


@dataclass(frozen=True)
class SymbolChange:
    """Two dimensions, by the index of their field pairs, that only one version wants equal."""

    other: int
    field: int
    old_ties: bool
    symbol: str


def compare_symbols(
    pairs: Sequence[tuple[model.Field, model.Field]],
) -> Iterator[SymbolChange]:
    """Yield the pairs of dimensions that one version ties together and the other does not.

    Args:
        pairs: the fields of a record that are alive in both versions.
    """
    olds = _dims([old for old, _ in pairs])
    news = _dims([new for _, new in pairs])
    common = [path for path in olds if path in news]
    couples = [*combinations(common, 2)]
    couples += [(path, path) for path in common if olds[path].many]
    for first, second in couples:
        old = (olds[first], olds[second])
        new = (news[first], news[second])
        indices = int(first[0]), int(second[0])
        if _wants_equal(*new) and not _keeps_equal(*old):
            yield SymbolChange(*indices, False, str(new[1].size))
        if _wants_equal(*old) and not _keeps_equal(*new):
            yield SymbolChange(*indices, True, str(old[1].size))


def _wants_equal(first: _Dim, second: _Dim) -> bool:
    return (
        isinstance(first.size, str) and first.size == second.size and first.size != "_"
    )


def _keeps_equal(first: _Dim, second: _Dim) -> bool:
    return first.size == second.size and first.size != "_"


def _dims(fields: Sequence[model.Field]) -> dict[_Path, _Dim]:
    return {
        dim.path: dim
        for index, field in enumerate(fields)
        for dim in _walk(field.type, (index,), False)
    }


def _walk(type_: Type, path: _Path, many: bool) -> Iterator[_Dim]:
    """Yield the dimensions in a type; nullables leave no trace in the path."""
    if isinstance(type_, model.TensorType):
        for axis, size in enumerate(type_.dims or ()):
            yield _Dim((*path, axis), size, many)
    elif isinstance(type_, model.NullableType):
        yield from _walk(type_.item, path, many)
    elif isinstance(type_, model.ListType):
        yield from _walk(type_.item, (*path, "list"), True)
    elif isinstance(type_, model.DictType):
        yield from _walk(type_.value, (*path, "dict"), True)
    elif isinstance(type_, model.TupleType):
        for index, item in enumerate(type_.items):
            yield from _walk(item, (*path, "tuple", index), many)
    elif isinstance(type_, model.UnionType):
        for option in type_.options:
            kind = type(option).__name__
            vector = isinstance(option, model.TensorType) and option.is_vector
            yield from _walk(option, (*path, kind, int(vector)), many)

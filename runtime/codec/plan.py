"""The description table as the plain tuples that the compiled engine is made of.

A record is `(cls, tag, recursive, symbols, fields)`: tag -1 for a struct, symbols the number of
dimension symbols that must agree. A field is `(name, type, make_default, removed, late,
nil_means_default)`: late for one that an older writer does not write. A type is `(kind, ...)`; the
kind is the name of its class in the table, and native/plan.c reads what follows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

from . import table, tensors
from .dtypes import DTYPE_NUMBERS

Node = tuple[Any, ...]


def make_plan(records: table.Records) -> tuple[Node, ...]:
    """Return the plan of a group, of all its structs and messages."""
    numbers = {cls: number for number, cls in enumerate(records)}
    return tuple(_record(cls, record, numbers) for cls, record in records.items())


def _record(cls: type, record: table.Record, numbers: dict[type, int]) -> Node:
    symbols = _symbols_to_check(record)
    return (
        cls,
        -1 if record.tag is None else record.tag,
        record.recursive,
        len(symbols),
        tuple(
            (
                field.name,
                None if field.removed else _type(field.type, numbers, symbols),
                field.default,
                field.removed,
                field.since > 1,
                field.default is not None and not field.takes_nil,
            )
            for field in record.fields
        ),
    )


def _type(type_: table.Type, numbers: dict[type, int], symbols: dict[str, int]) -> Node:
    kind = type(type_).__name__
    inner = tuple(_type(each, numbers, symbols) for each in table.inner(type_))
    match type_:
        case table.Int():
            return (kind, *type_.limits)
        case table.Float():
            return (kind, type_.bits, type_.finite)
        case table.Str() | table.Bytes():
            return (kind, type_.max_len)
        case table.List() | table.Dict():
            return (kind, inner, type_.max_len)
        case table.Tuple() | table.Nullable() | table.Union():
            return (kind, inner)
        case table.Enum():
            members = tuple(sorted((each for each in type_.cls), key=int))
            values = tuple(map(int, members))
            return (kind, type_.cls, values, members, type_.unknown)
        case table.Struct() | table.Message():
            return (kind, numbers[type_.cls])
        case table.Tensor():
            return (kind, *_tensor(type_, symbols))
        case _:
            return (kind,)


def _tensor(type_: table.Tensor, symbols: dict[str, int]) -> Node:
    """Return dtype, sizes, symbols, limit, and the calls for what DLPack cannot do."""
    shape, axes = type_.shape, type_.dims
    return (
        -1 if type_.dtype == "any" else DTYPE_NUMBERS[type_.dtype],
        shape and tuple(-1 if size is None else size for size in shape),
        axes and tuple(symbols.get(str(axis), -1) for axis in axes),
        type_.max_len,
        partial(tensors.encode_slot, type_),
        partial(tensors.decode_slot, type_, None),
    )


def _symbols_to_check(record: table.Record) -> dict[str, int]:
    """Number the symbols that can stand twice in one struct or message."""
    counts: Counter[str] = Counter()
    for field in record.live_fields:
        for symbol, may_repeat in _symbols(field.type, False):
            counts[symbol] += 2 if may_repeat else 1
    repeated = [symbol for symbol, count in counts.items() if count > 1]
    return {symbol: number for number, symbol in enumerate(repeated)}


def _symbols(type_: table.Type, may_repeat: bool) -> Iterator[tuple[str, bool]]:
    """Yield the symbols of a type's tensors, and whether one field may hold several of them."""
    if isinstance(type_, table.Tensor):
        for dim in type_.dims or ():
            if isinstance(dim, str) and dim != "_":
                yield dim, may_repeat
        return
    repeats = may_repeat or isinstance(type_, (table.List, table.Dict))
    for each in table.inner(type_):
        yield from _symbols(each, repeats)

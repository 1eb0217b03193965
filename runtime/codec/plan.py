"""The description table as the plain tuples that the compiled engine is made of.

A record is `(cls, tag, recursive, root, symbols, fields)`: tag -1 for a struct, root for a message
of the group itself, symbols the number of dimension symbols that must agree. A field is
`(name, type, make_default, removed, late, nil_means_default)`: late for one that an older writer
does not write. A type is `(kind, ...)`, with the kinds of `Kind` in runtime/native/native.h.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from enum import IntEnum
from functools import partial
from typing import Any

from msgen.runtime.codec.reference.common import takes_nil, tensor_shape

from . import table, tensors


class Kind(IntEnum):
    """The numbers that the engine knows types by."""

    BOOL = 0
    INT = 1
    FLOAT = 2
    STR = 3
    BYTES = 4
    PLAIN = 5
    LIST = 6
    TUPLE = 7
    DICT = 8
    NULLABLE = 9
    UNION = 10
    ENUM = 11
    STRUCT = 12
    MESSAGE = 13
    TENSOR = 14


Node = tuple[Any, ...]


def make_plan(records: table.Records, roots: table.Records) -> tuple[Node, ...]:
    """Return the plan of a group.

    Args:
        records: every struct and message.
        roots: the messages that stand by themselves.
    """
    numbers = {cls: number for number, cls in enumerate(records)}
    return tuple(
        _record(cls, record, numbers, cls in roots) for cls, record in records.items()
    )


def _record(
    cls: type, record: table.Record, numbers: dict[type, int], is_root: bool
) -> Node:
    symbols = _symbols_to_check(record)
    return (
        cls,
        -1 if record.tag is None else record.tag,
        record.recursive,
        is_root,
        len(symbols),
        tuple(_field(field, numbers, symbols) for field in record.fields),
    )


def _field(
    field: table.Field, numbers: dict[type, int], symbols: dict[str, int]
) -> Node:
    return (
        field.name,
        None if field.removed else _type(field.type, numbers, symbols),
        field.default,
        field.removed,
        field.since > 1,
        field.default is not None and not takes_nil(field.type),
    )


def _type(type_: table.Type, numbers: dict[type, int], symbols: dict[str, int]) -> Node:
    def inner(*types: table.Type) -> Node:
        return tuple(_type(each, numbers, symbols) for each in types)

    if isinstance(type_, table.Bool):
        return (Kind.BOOL,)
    if isinstance(type_, table.Int):
        return (Kind.INT, *type_.limits)
    if isinstance(type_, table.Float):
        return (Kind.FLOAT, type_.bits, type_.finite)
    if isinstance(type_, table.Str):
        return (Kind.STR, type_.max_len)
    if isinstance(type_, table.Bytes):
        return (Kind.BYTES, type_.max_len)
    if isinstance(type_, table.Plain):
        return (Kind.PLAIN,)
    if isinstance(type_, table.List):
        return (Kind.LIST, inner(type_.item), type_.max_len)
    if isinstance(type_, table.Tuple):
        return (Kind.TUPLE, inner(*type_.items))
    if isinstance(type_, table.Dict):
        return (Kind.DICT, inner(type_.key, type_.value), type_.max_len)
    if isinstance(type_, table.Nullable):
        return (Kind.NULLABLE, inner(type_.item))
    if isinstance(type_, table.Union):
        return (Kind.UNION, inner(*type_.options))
    if isinstance(type_, table.Enum):
        members = sorted((member for member in type_.cls), key=int)
        values = tuple(map(int, members))
        return (Kind.ENUM, type_.cls, values, tuple(members), type_.unknown)
    if isinstance(type_, table.Struct):
        return (Kind.STRUCT, numbers[type_.cls])
    if isinstance(type_, table.Message):
        return (Kind.MESSAGE, numbers[type_.cls])
    return _tensor(type_, symbols)


def _tensor(type_: table.Tensor, symbols: dict[str, int]) -> Node:
    shape = tensor_shape(type_)
    encode: Callable[..., Any]
    decode: Callable[..., Any]
    if type_.dtype == "any":
        number = -1
        encode = partial(_encode_any, shape=shape, max_len=type_.max_len)
        decode = partial(
            tensors.decode_any_tensor, shape=shape, frames=None, max_len=type_.max_len
        )
    else:
        number = tensors.DTYPE_NUMBERS[type_.dtype]
        dtype = tensors.DTYPES[type_.dtype]
        encode = partial(_encode, dtype=dtype, shape=shape, max_len=type_.max_len)
        decode = partial(
            tensors.decode_tensor,
            dtype=dtype,
            shape=shape,
            frames=None,
            max_len=type_.max_len,
        )
    return (
        Kind.TENSOR,
        number,
        None
        if shape is None
        else tuple(-1 if size is None else size for size in shape),
        None
        if type_.dims is None
        else tuple(
            symbols.get(dim, -1) if isinstance(dim, str) else -1 for dim in type_.dims
        ),
        type_.max_len,
        encode,
        decode,
    )


def _encode(value: Any, frames: Any, *, dtype: Any, shape: Any, max_len: Any) -> Any:
    return tensors.encode_tensor(value, dtype, shape, frames, max_len)


def _encode_any(value: Any, frames: Any, *, shape: Any, max_len: Any) -> Any:
    return tensors.encode_any_tensor(value, shape, frames, max_len)


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

"""The wire format's scalars, arrays and headers: what generated functions are made of.

A message is one msgpack array `[header, slot, ...]`; docs/wire-format.md has the whole format.
The functions here raise `Unfit` without a text. It is the fast path's only error, and sends the
message to the table codec, which finds the field and the words.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
from msgpack import Packer
from msgpack import unpackb as unpackb

from .frames import Buffer, FrameReader, FrameWriter, Unfit

I8_MIN, I8_MAX, U8_MAX = -(1 << 7), (1 << 7) - 1, (1 << 8) - 1
I16_MIN, I16_MAX, U16_MAX = -(1 << 15), (1 << 15) - 1, (1 << 16) - 1
I32_MIN, I32_MAX, U32_MAX = -(1 << 31), (1 << 31) - 1, (1 << 32) - 1
I64_MIN, I64_MAX, U64_MAX = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1
F32_MAX = float.fromhex("0x1.fffffep127")

E = TypeVar("E")

HEADER_BIT: Final = 0x8000_0000

MAX_DEPTH: Final = 64
"""Times that a recursive struct or message may stand inside itself."""
PLAIN_DEPTH: Final = 32
"""Levels of lists and dicts that a value of type `any` may have."""

Encoders: TypeAlias = dict[type, Callable[..., list[Any]]]
"""Message classes to their encoders: `(msg, frames) -> [tag, slot, ...]`."""
Decoders: TypeAlias = dict[int, Callable[..., Any]]
"""Tags to decoders: `(slots, frames) -> message`."""


class _Missing:
    """Stands in a slot that an older writer did not write, where nil would be a value."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()


def to_int(value: Any) -> int:
    """Convert an integer of another class, such as numpy's, to int."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise Unfit
    return int(value)


def to_float(value: Any) -> float:
    """Convert a number of another class, an int or one of numpy's, to float."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(
        value, (float, int, np.floating, np.integer)
    ):
        raise Unfit
    return float(value)


def to_bool(value: Any) -> bool:
    """Convert numpy's bool."""
    if not isinstance(value, np.bool_):
        raise Unfit
    return bool(value)


def as_int(value: Any, low: int, high: int) -> int:
    """Return an int in range; of this class, like all values that an `as_` function returns."""
    if type(value) is not int or not low <= value <= high:
        raise Unfit
    return value


def as_float(value: Any, finite: bool = False) -> float:
    if type(value) is not float or (finite and not math.isfinite(value)):
        raise Unfit
    return value


def as_f32(value: Any, finite: bool = False) -> float:
    """Return a float that 32 bits can hold, to their precision."""
    if F32_MAX < abs(as_float(value, finite)) < math.inf:
        raise Unfit
    return value  # type: ignore[no-any-return]


def as_bool(value: Any) -> bool:
    if type(value) is not bool:
        raise Unfit
    return value


def as_str(value: Any, max_len: int | None = None) -> str:
    if type(value) is not str or (max_len is not None and len(value) > max_len):
        raise Unfit
    return value


def as_member(value: Any, cls: type[E]) -> E:
    """Return a member of an enum; its number would not do."""
    if type(value) is not cls:
        raise Unfit
    return value


def as_list(value: Any, max_len: int | None = None) -> list[Any]:
    if type(value) is not list or (max_len is not None and len(value) > max_len):
        raise Unfit
    return value


def as_dict(value: Any, max_len: int | None = None) -> dict[Any, Any]:
    if type(value) is not dict or (max_len is not None and len(value) > max_len):
        raise Unfit
    return value


def as_plain(value: Any, depth: int = PLAIN_DEPTH) -> Any:
    """Return a value of type `any` after looking through it."""
    kind = type(value)
    if kind is list or kind is dict:
        if depth == 0:
            raise Unfit
        items = value
        if kind is dict:
            for key in value:
                if type(key) is not str:
                    raise Unfit
            items = value.values()
        for item in items:
            as_plain(item, depth - 1)
    elif kind is int:
        if not I64_MIN <= value <= U64_MAX:
            raise Unfit
    elif kind not in _PLAIN_LEAVES:
        raise Unfit
    return value


_PLAIN_LEAVES = frozenset({type(None), bool, float, str, bytes})


def encode_bytes(
    value: Any, frames: FrameWriter | None, max_len: int | None = None
) -> Any:
    """Return bytes for a slot, or the index of the frame they were moved to."""
    if type(value) is not bytes or (max_len is not None and len(value) > max_len):
        raise Unfit
    if frames is not None and len(value) >= frames.threshold:
        return frames.add(value)
    return value


def decode_bytes(
    slot: Any, frames: FrameReader | None, max_len: int | None = None
) -> bytes:
    """Return the bytes of a slot, fetched from their frame where it holds an index."""
    if type(slot) is not bytes:
        if frames is None:
            raise Unfit
        slot = bytes(frames.take(slot))
    if max_len is not None and len(slot) > max_len:
        raise Unfit
    return slot  # type: ignore[no-any-return]


def decode_member(slot: Any, members: dict[int, Any], unknown: Any = None) -> Any:
    """Return the enum member of a number; ``unknown`` where this build does not know it."""
    if type(slot) is not int:
        raise Unfit
    member = members.get(slot, unknown)
    if member is None:
        raise Unfit
    return member


def fit(slots: list[Any], count: int, padding: tuple[Any, ...] = ()) -> list[Any]:
    """Bring an array of another version to the length that this build knows.

    Args:
        slots: what was unpacked.
        count: how many slots there should be.
        padding: what stands for the last slots where an older writer wrote none.

    Returns:
        Exactly ``count`` slots; those that a newer writer appended are dropped.
    """
    missing = count - len(slots)
    if missing > len(padding):
        raise Unfit
    if missing > 0:
        return slots + list(padding[-missing:])
    return slots[:count]


class Single:
    """A slot whose floats are written with 32 bits."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def encode_f32(value: Any, finite: bool = False) -> Single:
    """Return the slot of a float that 32 bits can hold."""
    return Single(as_f32(value, finite))


# Making a Packer costs more than packing a small message, and one cannot be shared: a thread, or
# a finalizer that runs in the middle of a call, would find it in use. A list's pop and append are
# atomic, so a pool needs no lock; a packer whose call failed is not put back.
_packers: list[Packer] = []
_single_packers: list[Packer] = []
_KEEP_BELOW = 1 << 20
"""Packers keep the memory of their largest message; above this they are let go."""


def pack(value: Any) -> bytes:
    """Pack a value of msgpack's own types."""
    try:
        packer = _packers.pop()
    except IndexError:
        packer = Packer()
    data: bytes = packer.pack(value)
    if len(data) < _KEEP_BELOW:
        _packers.append(packer)
    return data


def pack_with_singles(value: Any) -> bytes:
    """Pack a value that may hold `Single` among its lists and dicts.

    msgpack's packer writes all floats of a call with one width, so the pieces are packed apart.
    """
    packer = _take(_packers) or Packer()
    single = _take(_single_packers) or Packer(use_single_float=True)
    pieces: list[bytes] = []
    _pack_pieces(value, packer, single, pieces)
    data = b"".join(pieces)
    if len(data) < _KEEP_BELOW:
        _packers.append(packer)
        _single_packers.append(single)
    return data


def _take(pool: list[Packer]) -> Packer | None:
    try:
        return pool.pop()
    except IndexError:
        return None


def _pack_pieces(
    value: Any, packer: Packer, single: Packer, pieces: list[bytes]
) -> None:
    if type(value) is Single:
        pieces.append(single.pack(value.value))
    elif type(value) is list:
        pieces.append(packer.pack_array_header(len(value)))
        for item in value:
            _pack_pieces(item, packer, single, pieces)
    elif type(value) is dict:
        pieces.append(packer.pack_map_header(len(value)))
        for key, item in value.items():
            pieces.append(packer.pack(key))
            _pack_pieces(item, packer, single, pieces)
    else:
        pieces.append(packer.pack(value))


def unpack(data: Buffer) -> Any:
    """Unpack one msgpack value; lists are lists, keys of any kind."""
    return unpackb(data, strict_map_key=False)

"""Both engines side by side, and values that put them to the test."""

from __future__ import annotations

import enum
import math
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import torch
from msgen.runtime.codec import native_engine
from msgen.runtime.codec.plan import make_plan

NATIVE = native_engine.why_not is None


class GaveUp(BaseException):
    """The compiled engine left a call to the table codec; not an Exception, so that nothing catches it."""


def strict_engine(codec: Any) -> Any:
    """Make the compiled engine of a codec, without the table codec behind it."""

    def give_up(*_: Any, **__: Any) -> Any:
        raise GaveUp

    from msgen.runtime.codec._native import Engine

    return Engine(
        records=make_plan(codec.records),
        prefix=codec._table_codec.prefix,
        encode=give_up,
        encode_frames=give_up,
        decode=give_up,
        decode_frames=give_up,
    )


@dataclass
class Outcome:
    """What a call gave: a value, or an error with its text and attributes."""

    value: Any = None
    error: BaseException | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Outcome):
            return NotImplemented
        if self.error is not None and other.error is not None:
            return (
                type(self.error) is type(other.error)
                and str(self.error) == str(other.error)
                and vars(self.error) == vars(other.error)
            )
        return self.error is other.error and alike(self.value, other.value)


def outcome(call: Callable[..., Any], *arguments: Any) -> Outcome:
    try:
        return Outcome(call(*arguments))
    except Exception as error:
        return Outcome(error=error)


def alike(left: Any, right: Any) -> bool:
    """Compare to the bit: classes, the bits of floats, and the memory of tensors count, too."""
    if type(left) is not type(right):
        return False
    if isinstance(left, torch.Tensor):
        return (
            left.dtype is right.dtype
            and left.shape == right.shape
            and left.stride() == right.stride()
            and (left.data_ptr() % 64, right.data_ptr() % 64) == (0, 0)
            and bytes_of(left) == bytes_of(right)
        )
    if isinstance(left, float):
        return struct.pack("d", left) == struct.pack("d", right)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(alike, left, right))
    if isinstance(left, dict):
        return len(left) == len(right) and all(
            alike(one, other) for one, other in zip(left.items(), right.items())
        )
    if isinstance(left, memoryview):
        return bytes(left) == bytes(right)
    if is_dataclass(left):
        return all(
            alike(getattr(left, each.name), getattr(right, each.name))
            for each in fields(left)
        )
    return bool(left == right)


def bytes_of(tensor: torch.Tensor) -> bytes:
    return tensor.reshape(-1).view(torch.uint8).numpy().tobytes()


class _Int(int):
    pass


class _Float(float):
    pass


class _Str(str):
    pass


class _Bytes(bytes):
    pass


class _List(list[Any]):
    pass


class _Dict(dict[Any, Any]):
    pass


class _Tuple(tuple[Any, ...]):
    pass


class _Number(enum.IntEnum):
    one = 1


class _Tensor(torch.Tensor):
    pass


DELETED = object()
"""Stands for an attribute that is not set."""


def _looped() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


def _shrunk(size: int) -> torch.Tensor:
    tensor = torch.arange(64, dtype=torch.int32)
    tensor.untyped_storage().resize_(size)
    return tensor


def _shrunk_behind() -> torch.Tensor:
    """A view whose storage holds as many bytes as it does, but not the ones it looks at."""
    whole = torch.arange(64, dtype=torch.int32)
    half = whole[32:]
    whole.untyped_storage().resize_(128)
    return half


_COMPLEX = torch.arange(4, dtype=torch.float32) * (1 + 2j)

STRANGE: list[Callable[[], Any]] = [
    lambda: DELETED,
    lambda: None,
    lambda: True,
    lambda: False,
    lambda: 0,
    lambda: -1,
    lambda: 127,
    lambda: 128,
    lambda: 255,
    lambda: 256,
    lambda: -129,
    lambda: 2**31,
    lambda: 2**32,
    lambda: 2**63 - 1,
    lambda: 2**63,
    lambda: 2**64 - 1,
    lambda: 2**64,
    lambda: -(2**63),
    lambda: -(2**63) - 1,
    lambda: 10**400,
    lambda: 0.5,
    lambda: -0.0,
    lambda: math.nan,
    lambda: -math.inf,
    lambda: 3.5e38,
    lambda: 1e-46,
    lambda: "",
    lambda: "plain",
    lambda: "é\u20ac\U0001f600",
    lambda: "\ud800",
    lambda: "x" * 3000,
    lambda: "ü" * 3000,
    lambda: b"",
    lambda: b"bytes",
    lambda: bytes(3000),
    lambda: bytearray(b"array"),
    lambda: memoryview(b"view"),
    list,
    lambda: [1, "2", None],
    lambda: list(range(20)),
    dict,
    lambda: {"key": 1},
    lambda: {1: "key"},
    lambda: (),
    lambda: (1, "2"),
    lambda: {1, 2},
    lambda: object(),
    lambda: 1j,
    lambda: _looped(),
    lambda: _Int(5),
    lambda: _Float(0.5),
    lambda: _Str("sub"),
    lambda: _Bytes(b"sub"),
    lambda: _List([1]),
    lambda: _Dict(key=1),
    lambda: _Tuple((1, "2")),
    lambda: _Number.one,
    lambda: np.int64(7),
    lambda: np.uint8(7),
    lambda: np.float32(0.1),
    lambda: np.float64(0.1),
    lambda: np.bool_(True),
    lambda: np.str_("text"),
    lambda: np.zeros(3, np.int32),
    lambda: torch.arange(3, dtype=torch.int32),
    lambda: torch.arange(3),
    lambda: torch.zeros(2, 3, dtype=torch.bfloat16),
    lambda: torch.zeros(0, dtype=torch.int32),
    lambda: torch.tensor(1.5, dtype=torch.float64),
    lambda: torch.tensor([True, False]),
    lambda: torch.tensor([0, 1, 2], dtype=torch.uint8).view(torch.bool),
    lambda: torch.arange(20, dtype=torch.int32)[::2],
    lambda: torch.arange(20, dtype=torch.int32)[3:9],
    lambda: torch.arange(6, dtype=torch.int32).reshape(2, 3).T,
    lambda: torch.arange(1, dtype=torch.int32).expand(5),
    lambda: torch.arange(3, dtype=torch.float16, requires_grad=True),
    lambda: torch.nn.Parameter(torch.arange(3, dtype=torch.float16)),
    lambda: torch.arange(3, dtype=torch.int32).as_subclass(_Tensor),
    lambda: _COMPLEX,
    lambda: _COMPLEX.conj(),
    lambda: _COMPLEX.conj().imag,
    lambda: torch._neg_view(torch.arange(3, dtype=torch.float64)),
    lambda: torch.zeros(3, dtype=torch.int32, device="meta"),
    lambda: torch.zeros(3, dtype=torch.int32).to_sparse(),
    lambda: _shrunk(0),
    lambda: _shrunk(8),
    lambda: _shrunk_behind(),
]


def spoil(message: Any, choose: random.Random) -> None:
    """Put a strange value somewhere into a message."""
    holders = [message]
    seen = {id(message)}
    for each in holders:  # which grows; a list may contain itself
        for part in filter(_is_holder, _parts(each)):
            if id(part) not in seen:
                seen.add(id(part))
                holders.append(part)
    _replace(choose.choice(holders), choose.choice(STRANGE)(), choose)


def _is_holder(value: Any) -> bool:
    return isinstance(value, (list, dict)) or is_dataclass(value)


def _parts(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, dict):
        return list(value.values())
    return [
        getattr(value, each.name) for each in fields(value) if hasattr(value, each.name)
    ]


def _replace(holder: Any, strange: Any, choose: random.Random) -> None:
    if isinstance(holder, list):
        if holder and choose.random() < 0.7:
            holder[choose.randrange(len(holder))] = strange
        else:
            holder.append(strange)
    elif isinstance(holder, dict):
        if holder and choose.random() < 0.7:
            holder[choose.choice(list(holder))] = strange
        else:
            try:
                hash(strange)
            except TypeError:
                strange = "key"
            holder[strange] = next(iter(holder.values()), None)
    elif names := [each.name for each in fields(holder) if hasattr(holder, each.name)]:
        name = choose.choice(names)
        if strange is DELETED:
            delattr(holder, name)
        else:
            setattr(holder, name, strange)


def subclassed(message: Any) -> Any:
    """Return an instance of a subclass with the same content."""
    cls = type(message)
    made: Any = object.__new__(type("Sub", (cls,), {}))
    for each in fields(cls):
        if hasattr(message, each.name):
            setattr(made, each.name, getattr(message, each.name))
    return made

"""Tensors: raw little-endian C-order bytes out of torch tensors and back, for every dtype.

Bytes never pass through a numpy type of the element, since bfloat16 and the float8 family have
none. Encoding takes tensors of any device, strides and autograd state. A decoded tensor owns
writable memory, aligned to 64 bytes.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from . import table
from .arena import SMALL, cut_small
from .dtypes import DTYPE_OF, DTYPES, NUMBER_OF
from .frames import Buffer, FrameReader, FrameWriter, Unfit

if sys.byteorder != "little":  # pragma: no cover
    raise ImportError(
        "msgen.runtime writes tensors as they lie in memory: little-endian hosts only"
    )

_MAX_RANK = 64  # the most that the schema language takes, and that torch computes with
_COPY_BELOW = 16 * 1024
"""Bytes below which copying a tensor's memory costs less than making a view of it."""

# numpy has these under the same name, and memoryview can read their bytes at once.
_CASTABLE = frozenset({torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64})

_BOOL = torch.bool

Shape = tuple[int | None, ...]
"""Sizes of a fixed rank; None for any size."""


def encode_vector(
    value: Any,
    dtype: torch.dtype,
    frames: FrameWriter | None,
    max_len: int | None = None,
) -> Any:
    """Return the slot of a tensor of rank 1 and a fixed dtype: its payload."""
    if (
        not isinstance(value, torch.Tensor)
        or value.dtype is not dtype
        or value.dim() != 1
    ):
        raise Unfit
    if max_len is not None and value.numel() > max_len:
        raise Unfit
    return _payload(value, dtype, frames)


def encode_tensor(
    value: Any,
    dtype: torch.dtype,
    shape: Shape | None,
    frames: FrameWriter | None,
    max_len: int | None = None,
) -> Any:
    """Return the slot of a tensor of a fixed dtype: `[dims..., payload]`, at rank 1 the payload."""
    if not isinstance(value, torch.Tensor) or value.dtype is not dtype:
        raise Unfit
    _check_shape(value.shape, shape, max_len)
    payload = _payload(value, dtype, frames)
    if shape is not None and len(shape) == 1:
        return payload
    return [*value.shape, payload]


def encode_any_tensor(
    value: Any,
    shape: Shape | None,
    frames: FrameWriter | None,
    max_len: int | None = None,
) -> Any:
    """Return the slot of a tensor of any dtype: `[dtype number, dims..., payload]`."""
    if not isinstance(value, torch.Tensor) or value.dtype not in NUMBER_OF:
        raise Unfit
    _check_shape(value.shape, shape, max_len)
    return [NUMBER_OF[value.dtype], *value.shape, _payload(value, value.dtype, frames)]


def decode_vector(
    slot: Any,
    dtype: torch.dtype,
    frames: FrameReader | None,
    max_len: int | None = None,
) -> torch.Tensor:
    """Return the tensor of a payload: rank 1, as many elements as there are bytes for."""
    if (
        type(slot) is bytes
        and 0 < len(slot) <= SMALL
        and dtype is not _BOOL
        and max_len is None
    ):
        try:
            return cut_small(slot, dtype)
        except ValueError:  # half an element
            raise Unfit from None
    payload = _read(slot, frames)
    size = len(payload)
    item = dtype.itemsize
    if size % item or (max_len is not None and size // item > max_len):
        raise Unfit
    return _tensor(payload, dtype)


def decode_tensor(
    slot: Any,
    dtype: torch.dtype,
    shape: Shape | None,
    frames: FrameReader | None,
    max_len: int | None = None,
) -> torch.Tensor:
    """Return the tensor of `[dims..., payload]`, at rank 1 of a payload."""
    if shape is not None and len(shape) == 1:
        tensor = decode_vector(slot, dtype, frames, max_len)
        _check_shape(tensor.shape, shape, None)
        return tensor
    _check_array(slot, shape, 1)
    return _shaped(slot[-1], dtype, slot[:-1], shape, frames, max_len)


def decode_any_tensor(
    slot: Any,
    shape: Shape | None,
    frames: FrameReader | None,
    max_len: int | None = None,
) -> torch.Tensor:
    """Return the tensor of `[dtype number, dims..., payload]`."""
    _check_array(slot, shape, 2)
    number = slot[0]
    if type(number) is not int or number not in DTYPE_OF:
        raise Unfit
    return _shaped(slot[-1], DTYPE_OF[number], slot[1:-1], shape, frames, max_len)


def encode_slot(type_: table.Tensor, value: Any, frames: FrameWriter | None) -> Any:
    """Return the slot of a tensor by its entry in the description table."""
    if type_.dtype == "any":
        return encode_any_tensor(value, type_.shape, frames, type_.max_len)
    dtype = DTYPES[type_.dtype]
    return encode_tensor(value, dtype, type_.shape, frames, type_.max_len)


def decode_slot(
    type_: table.Tensor, frames: FrameReader | None, slot: Any
) -> torch.Tensor:
    """Return the tensor of a slot by its entry in the description table."""
    if type_.dtype == "any":
        return decode_any_tensor(slot, type_.shape, frames, type_.max_len)
    dtype = DTYPES[type_.dtype]
    return decode_tensor(slot, dtype, type_.shape, frames, type_.max_len)


def is_tensor(value: Any, dtype: torch.dtype | None, rank: int | None) -> bool:
    """Say whether a value is a tensor of a dtype and rank, None standing for any."""
    return (
        isinstance(value, torch.Tensor)
        and (dtype is None or value.dtype is dtype)
        and (rank is None or value.dim() == rank)
    )


def same(left: Any, right: Any) -> bool:
    """Compare values that may hold tensors: those by dtype, shape and content.

    Tensors on different devices are compared on the CPU.
    """
    if isinstance(left, torch.Tensor):
        return isinstance(right, torch.Tensor) and _same_tensor(left, right)
    if isinstance(left, (list, tuple)):
        return (
            type(left) is type(right)
            and len(left) == len(right)
            and all(map(same, left, right))
        )
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(same(value, right[key]) for key, value in left.items())
        )
    return bool(left == right)


def _check_array(slot: Any, shape: Shape | None, extra: int) -> None:
    """Check that a slot has one item for each dimension and ``extra`` more."""
    if type(slot) is not list:
        raise Unfit
    rank = len(slot) - extra
    fits = 0 <= rank <= _MAX_RANK if shape is None else rank == len(shape)
    if not fits:
        raise Unfit


def _check_shape(
    actual: Sequence[int], shape: Shape | None, max_len: int | None
) -> None:
    if shape is not None:
        if len(actual) != len(shape):
            raise Unfit
        for size, wanted in zip(actual, shape):
            if wanted is not None and size != wanted:
                raise Unfit
    if max_len is not None and math.prod(actual) > max_len:
        raise Unfit


def _payload(
    tensor: torch.Tensor, dtype: torch.dtype, frames: FrameWriter | None
) -> Any:
    """Return a tensor's bytes: copied while they are few, a view of them otherwise."""
    if (
        not tensor.is_cpu
        or not tensor.is_contiguous()
        or (
            (dtype.is_floating_point or dtype.is_complex)
            and (tensor.is_neg() or tensor.is_conj())
        )
    ):
        _check_memory(tensor)
        tensor = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    size = tensor.nbytes
    if size != tensor.untyped_storage().nbytes() or tensor.storage_offset():
        _check_memory(tensor)
    if dtype is torch.bool:
        # A view of other bytes may hold any byte.
        tensor = tensor.view(torch.uint8) != 0
    if frames is not None and size >= frames.threshold:
        return frames.add(view(tensor))
    if size >= _COPY_BELOW:
        return view(tensor)
    address = tensor.data_ptr()
    if not address and size:
        raise Unfit  # ctypes would make up the bytes
    array = _arrays.get(size) or _array_of(size)
    return array.from_address(address).raw


def _check_memory(tensor: torch.Tensor) -> None:
    """Refuse a tensor whose storage was resized away under it, as sharded training does."""
    if tensor.numel():
        steps = zip(tensor.shape, tensor.stride())
        last = tensor.storage_offset() + sum((size - 1) * step for size, step in steps)
        if (last + 1) * tensor.dtype.itemsize > tensor.untyped_storage().nbytes():
            raise Unfit


# ctypes makes a type for each length, which takes as long as reading the memory through it. With the
# type at hand that takes 0.2 us, where ctypes.string_at takes 0.3.
_arrays: dict[int, Any] = {}
_KEEP_ARRAYS = 1024
"""A bound for senders whose tensors all differ in size: each type takes about three kilobytes."""


def _array_of(size: int) -> Any:
    """Return the type of ``size`` bytes in memory, and remember it among the recent ones."""
    if len(_arrays) >= _KEEP_ARRAYS:
        _arrays.clear()
    array = _arrays[size] = ctypes.c_char * size
    return array


def view(tensor: torch.Tensor) -> memoryview:
    """Return the bytes of a contiguous CPU tensor as a view that keeps them alive."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.dim() != 1:
        tensor = tensor.reshape(-1)
    if tensor.dtype in _CASTABLE:
        return tensor.numpy().data.cast("B")
    return tensor.view(torch.uint8).numpy().data


def _read(slot: Any, frames: FrameReader | None) -> Buffer:
    """Return the payload of a slot, fetched from its frame where the slot holds an index."""
    if type(slot) is bytes:
        return slot
    if frames is None:
        raise Unfit
    return frames.take(slot)


def _shaped(
    slot: Any,
    dtype: torch.dtype,
    dims: list[Any],
    shape: Shape | None,
    frames: FrameReader | None,
    max_len: int | None,
) -> torch.Tensor:
    for dim in dims:
        if type(dim) is not int or dim < 0:
            raise Unfit
    count = math.prod(dims)
    payload = _read(slot, frames)
    if count * dtype.itemsize != len(payload):
        raise Unfit
    _check_shape(dims, shape, max_len)
    return _tensor(payload, dtype).reshape(dims)


def _tensor(payload: Buffer, dtype: torch.dtype) -> torch.Tensor:
    """Copy a payload into a tensor of rank 1 that owns its memory."""
    if dtype is torch.bool and bytes(payload).translate(None, b"\x00\x01"):
        raise Unfit  # torch takes any other byte for undefined behaviour
    size = len(payload)
    if type(payload) is bytes and 0 < size <= SMALL:
        return cut_small(payload, dtype)
    tensor = torch.empty(size // dtype.itemsize, dtype=dtype, device="cpu")
    if size == 0:
        return tensor
    if type(payload) is bytes and type(tensor) is torch.Tensor:
        ctypes.memmove(tensor.data_ptr(), payload, size)
    else:
        tensor.view(torch.uint8).numpy()[:] = np.frombuffer(payload, np.uint8)
    return tensor


def _same_tensor(left: torch.Tensor, right: torch.Tensor) -> bool:
    if left.dtype is not right.dtype or left.shape != right.shape:
        return False
    if left.device != right.device:
        left, right = left.cpu(), right.cpu()
    if left.dtype.is_floating_point and left.dtype.itemsize == 1:
        # torch.equal knows no float8; every value of it is exact in float32.
        left, right = left.float(), right.float()
    return torch.equal(left, right)

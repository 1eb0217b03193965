"""Aligned memory for small decoded tensors.

torch takes about 1.5 us to allocate a tensor of its own and fill it from bytes; cutting a piece
from a block of aligned memory takes half of that. A piece is handed out once and never again, so
every tensor is the only owner of its bytes; a block is freed with the last tensor cut from it. A
tensor that lives long therefore keeps at most one block, `BLOCK` bytes, alive.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

BLOCK = 64 * 1024
ALIGNMENT = 64
LARGEST = 4 * 1024
"""Bytes up to which a tensor is cut from a block."""

# numpy's types, by torch's; the others travel as integers of their size.
_ARRAY_TYPES: dict[torch.dtype, Any] = {
    torch.bool: np.bool_,
    torch.uint8: np.uint8,
    torch.int8: np.int8,
    torch.int16: np.int16,
    torch.int32: np.int32,
    torch.int64: np.int64,
    torch.float16: np.float16,
    torch.float32: np.float32,
    torch.float64: np.float64,
    torch.complex64: np.complex64,
    torch.complex128: np.complex128,
}
_SHIFTS = {dtype: dtype.itemsize.bit_length() - 1 for dtype in _ARRAY_TYPES}


class _Block:
    __slots__ = ("memory", "used", "views")

    def __init__(self) -> None:
        # torch aligns its own allocations to 64 bytes; numpy and bytearray do not.
        block = torch.empty(BLOCK, dtype=torch.uint8).numpy()
        self.memory = block.data
        self.views: dict[torch.dtype, Any] = {
            dtype: block.view(kind) for dtype, kind in _ARRAY_TYPES.items()
        }
        self.used = 0


# A pool as for packers, and for the same reason: pop and append are atomic.
_blocks: list[_Block] = []


def cut(payload: bytes, dtype: torch.dtype) -> torch.Tensor | None:
    """Copy a payload into a tensor of rank 1.

    Args:
        payload: at most LARGEST bytes, a whole number of elements.

    Returns:
        A tensor on aligned, writable memory; None for dtypes that numpy lacks.
    """
    shift = _SHIFTS.get(dtype)
    if shift is None:
        return None
    try:
        block = _blocks.pop()
    except IndexError:
        block = _Block()
    start = block.used
    end = start + len(payload)
    if end > BLOCK:
        block = _Block()
        start, end = 0, len(payload)
    block.memory[start:end] = payload
    block.used = (end + ALIGNMENT - 1) & -ALIGNMENT
    tensor = torch.from_numpy(block.views[dtype][start >> shift : end >> shift])
    _blocks.append(block)
    return tensor

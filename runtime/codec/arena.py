"""Aligned memory for small decoded tensors.

To allocate a tensor of its own and fill it from bytes takes twice as long as to put a tensor on
memory that is there already, so small tensors are cut from blocks. A piece is handed out once and
never again: every tensor is the only owner of its bytes, and a block is freed with the last tensor
cut from it. A tensor that lives long keeps at most its one block alive, `BLOCK` bytes. Like any
tensor on memory from elsewhere, it cannot be resized in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch

ALIGNMENT = 64
"""Bytes of a cache line, to which torch aligns its own memory, too."""
SMALL = 4 * 1024
"""Bytes up to which a tensor is cut from a block."""
BLOCK = 64 * 1024
"""Bytes that one tensor which lives long keeps alive at most; sixteen of the largest fit."""

Cut: TypeAlias = Callable[[bytes, torch.dtype], torch.Tensor]


def make_arena(block_size: int) -> Cut:
    """Make a function that cuts tensors from blocks of ``block_size`` bytes."""
    # Blocks in use, each with the offset of its free end. A list's pop and append are atomic, so
    # two threads never hold one block, without a lock.
    blocks: list[tuple[memoryview, int]] = []
    take, put_back = blocks.pop, blocks.append

    def cut(payload: bytes, dtype: torch.dtype) -> torch.Tensor:
        """Copy a payload, not empty and of whole elements, into an aligned tensor of rank 1."""
        try:
            memory, start = take()
        except IndexError:
            memory, start = _new_block(block_size), 0
        end = start + len(payload)
        if end > block_size:
            memory, start, end = _new_block(block_size), 0, len(payload)
        put_back((memory, (end + ALIGNMENT - 1) & -ALIGNMENT))
        piece = memory[start:end]
        piece[:] = payload
        return torch.frombuffer(piece, dtype=dtype)

    return cut


def _new_block(size: int) -> memoryview:
    # torch aligns its own allocations to 64 bytes; bytearray and numpy do not.
    return torch.empty(size, dtype=torch.uint8, device="cpu").numpy().data


cut_small = make_arena(BLOCK)

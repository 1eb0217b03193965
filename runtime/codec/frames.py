"""Frames: large payloads that travel beside the array instead of inside it.

The head frame holds the array. A payload of at least the threshold becomes a frame of its own,
and its slot holds the frame's index, from 1. Frames are views of the payload's memory: nothing is
copied until they are sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview
"""What is read as bytes; anything with a contiguous buffer works."""

DEFAULT_THRESHOLD = 64 * 1024
"""Bytes from which a payload is given a frame of its own."""


class Unfit(Exception):
    """A value failed a test of the fast path; the table codec says which and why."""


class FrameWriter:
    """Collects the payload frames of one message."""

    __slots__ = ("buffers", "threshold")

    def __init__(self, threshold: int) -> None:
        self.buffers: list[Buffer] = []
        self.threshold = threshold

    def add(self, payload: Buffer) -> int:
        """Add a payload and return its frame's index."""
        self.buffers.append(payload)
        return len(self.buffers)


class FrameReader:
    """Hands out the payload frames of one message, each once.

    A frame that no slot names is no error: a newer writer's slot may name it.
    """

    __slots__ = ("_buffers",)

    def __init__(self, frames: Sequence[Buffer]) -> None:
        self._buffers: list[Buffer | None] = list(frames)
        self._buffers[0] = None  # the head

    def take(self, index: object) -> memoryview:
        """Return the payload at an index.

        Raises:
            Unfit: the index is no integer, out of range, or was taken before.
        """
        if type(index) is not int or not 0 < index < len(self._buffers):
            raise Unfit
        payload, self._buffers[index] = self._buffers[index], None
        if payload is None:
            raise Unfit
        return memoryview(payload).cast("B")

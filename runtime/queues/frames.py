"""Frames: what an encoded message is made of, and what ZeroMQ reads from the caller's memory.

A sent frame is copied by default, so that the caller may change a message once it is sent. A loan
saves the copy of large frames: ZeroMQ reads from the caller's memory until the message has left, and
a tracker says when. What is lent is bounded; without that, a slow peer makes the sender keep every
tensor that it ever sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, TypeAlias

import zmq
from msgen.runtime.codec.frames import Buffer

Frame: TypeAlias = bytes | bytearray | memoryview | zmq.Frame
"""A frame of an encoded message."""
Raw: TypeAlias = Frame | Sequence[Frame]
"""An encoded message: its frames, or its only frame."""

NOW = int(zmq.DONTWAIT)
"""The flag of a call that raises zmq.Again instead of waiting."""
MORE = int(zmq.DONTWAIT | zmq.SNDMORE)
"""That flag for a frame which others follow."""


def frames_of(raw: Raw) -> Sequence[Any]:
    """Return the frames of an encoded message that may be given as its only frame.

    Raises:
        ValueError: there is no frame.
    """
    if isinstance(raw, (bytes, bytearray, memoryview, zmq.Frame)):
        return (raw,)
    if not raw:
        raise ValueError("expected the frames of a message, got none")
    return raw


def plain_frames(frames: Sequence[Frame]) -> list[Buffer]:
    """Return frames as buffers, ZeroMQ's own ones uncopied."""
    return [each.buffer if isinstance(each, zmq.Frame) else each for each in frames]


def size_of(frames: Any) -> int:
    """Return the bytes of a message's only frame, or of its frames.

    Raises:
        TypeError: a frame is no contiguous memory; in the middle of a message it would be too late.
    """
    if type(frames) is bytes:
        return len(frames)
    size = 0
    for frame in frames:
        if isinstance(frame, memoryview) and frame.c_contiguous:
            size += frame.nbytes
        elif isinstance(frame, (bytes, bytearray, zmq.Frame)):
            size += len(frame)
        else:
            raise TypeError(
                f"expected a frame of contiguous bytes, got {type(frame).__name__}"
            )
    return size


class Loans:
    """Messages that ZeroMQ reads from the caller's memory.

    Args:
        most: bytes that may be lent at once; one larger message may go alone.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._loans: deque[tuple[zmq.MessageTracker, int]] = deque()
        self._lent = 0

    def add(self, tracker: zmq.MessageTracker, size: int) -> None:
        """Note that a message is lent until its tracker is done."""
        if not tracker.done:
            self._loans.append((tracker, size))
            self._lent += size

    @property
    def lent(self) -> int:
        """How many bytes are lent."""
        while self._loans and self._loans[0][0].done:
            self._lent -= self._loans.popleft()[1]
        return self._lent

    def has_room(self, size: int) -> bool:
        """Say whether a message of this size may be lent now."""
        lent = self.lent
        return not lent or lent + size <= self._most

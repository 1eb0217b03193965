"""Carriers: how frames get from the caller's memory to ZeroMQ's, by a copy or on loan.

A copy is made by default, so that the caller may change a message once it is sent. A loan saves it
for large frames: ZeroMQ reads from the caller's memory until the message has left, and a tracker
says when. What is lent is bounded; without that, a slow peer makes the sender keep every tensor that
it ever sent.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from itertools import repeat
from time import monotonic
from typing import Any

import zmq
from msgen.runtime.errors import MessageTooLarge

MAX_LENT_BYTES = 256 << 20
"""Bytes of messages that may be on their way out without having been copied."""

_SLICE_S = 0.01
_LAST = int(zmq.DONTWAIT)
_MORE = int(zmq.DONTWAIT | zmq.SNDMORE)


class Copying:
    """Sends copies.

    Args:
        send: a socket's call, taking a frame and flags.
        addr: the queue's address, for errors.
        limit: bytes of the largest message.

    Attributes:
        messages: how many were sent.
        bytes: of their frames.
    """

    def __init__(self, send: Callable[..., Any], addr: str, limit: int) -> None:
        self._send = send
        self._addr = addr
        self._limit = limit
        self.messages = 0
        self.bytes = 0

    def transmit(self, frames: Any) -> zmq.MessageTracker | None:
        """Send a message's only frame, or its frames, now.

        Raises:
            zmq.Again: there is no room.
            MessageTooLarge: and nothing was sent.
        """
        if type(frames) is bytes:
            size = len(frames)
            if size > self._limit:
                self._refuse(size)
            self._send(frames, _LAST)
        else:
            size = self.size(frames)
            # One call in C: a signal's handler cannot come between two frames of a message. Once
            # the first frame is taken, there is room for the others.
            list(map(self._send, frames, _flags(frames)))
        self.messages += 1
        self.bytes += size
        return None

    def size(self, frames: Any) -> int:
        """Return the bytes of a message.

        Raises:
            MessageTooLarge: they are more than the limit.
            TypeError: a frame is no contiguous memory.
        """
        if type(frames) is bytes:
            frames = (frames,)
        size = 0
        for frame in frames:
            if isinstance(frame, memoryview) and frame.c_contiguous:
                size += frame.nbytes
            elif isinstance(frame, (bytes, bytearray, zmq.Frame)):
                size += len(frame)
            else:
                # Found out in the middle of a message, it would be too late.
                raise TypeError(
                    f"expected a frame of contiguous bytes, got {type(frame).__name__}"
                )
        if size > self._limit:
            self._refuse(size)
        return size

    def _refuse(self, size: int) -> None:
        raise MessageTooLarge(
            f"{self._addr}: the message has {size:,} bytes, the queue's limit is "
            f"{self._limit:,}; give both ends a higher max_message_bytes"
        )

    @property
    def lent(self) -> int:
        """How many bytes ZeroMQ reads from the caller's memory."""
        return 0

    def has_room(self, frames: Any) -> bool:
        """Say whether so much more may be lent."""
        return True

    def wait_for_room(self, deadline: float | None) -> bool:
        """Wait a while for the oldest loan to come back; False where the deadline has passed."""
        return True


class Lending(Copying):
    """Lends large frames, and returns trackers.

    Args:
        max_lent_bytes: how much may be lent at once; one larger message may go alone.
    """

    def __init__(
        self, send: Callable[..., Any], addr: str, limit: int, max_lent_bytes: int
    ) -> None:
        super().__init__(send, addr, limit)
        self._max_lent_bytes = max_lent_bytes
        self._loans: deque[tuple[zmq.MessageTracker, int]] = deque()
        self._lent = 0

    def transmit(self, frames: Any) -> zmq.MessageTracker | None:
        """Send a message's only frame, or its frames, now.

        Returns:
            A tracker of all of them.

        Raises:
            zmq.Again: there is no room, or too much is lent already.
            MessageTooLarge: and nothing was sent.
        """
        if type(frames) is bytes:
            frames = (frames,)
        size = self.size(frames)
        if not self._may_lend(size):
            raise zmq.Again
        # Frames that were received belong to ZeroMQ, which counts their references.
        tracked = [not isinstance(frame, zmq.Frame) for frame in frames]
        trackers = list(map(self._send, frames, _flags(frames), repeat(False), tracked))
        tracker = zmq.MessageTracker(*(each for each in trackers if each is not None))
        if not tracker.done:
            self._loans.append((tracker, size))
            self._lent += size
        self.messages += 1
        self.bytes += size
        return tracker

    @property
    def lent(self) -> int:
        self._collect()
        return self._lent

    def has_room(self, frames: Any) -> bool:
        return self._may_lend(self.size(frames))

    def _may_lend(self, size: int) -> bool:
        if not self._lent:
            return True
        self._collect()
        return not self._lent or self._lent + size <= self._max_lent_bytes

    def wait_for_room(self, deadline: float | None) -> bool:
        if not self._loans:
            return True
        left = _SLICE_S if deadline is None else deadline - monotonic()
        if left <= 0:
            return False
        # In slices: what the socket has to do meanwhile, such as dropping a peer that died and the
        # loans to it, happens when it is looked at.
        with contextlib.suppress(zmq.NotDone):
            self._loans[0][0].wait(min(left, _SLICE_S))
        self._collect()
        return True

    def _collect(self) -> None:
        while self._loans and self._loans[0][0].done:
            self._lent -= self._loans.popleft()[1]


def _flags(frames: Sequence[object]) -> list[int]:
    flags = [_MORE] * len(frames)
    flags[-1] = _LAST
    return flags

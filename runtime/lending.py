"""Zero-copy sending: memory that ZeroMQ reads from while the caller must leave it alone."""

from __future__ import annotations

from collections import deque
from time import monotonic

import zmq

MAX_LENT_BYTES = 256 << 20
"""Bytes of frames that may be on their way out without having been copied."""


class Lender:
    """Counts the memory that is lent to ZeroMQ, and waits for it to come back.

    Without a bound, a slow peer makes the sender keep every tensor it ever sent.

    Args:
        limit: bytes that may be lent at once; one larger message may go alone.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lent: deque[tuple[zmq.MessageTracker, int]] = deque()
        self._bytes = 0

    @property
    def bytes(self) -> int:
        """How much is lent now."""
        self._collect()
        return self._bytes

    def has_room(self, size: int) -> bool:
        """Say whether so many bytes more may be lent."""
        if self._bytes and self._bytes + size > self._limit:
            self._collect()
            return not self._bytes or self._bytes + size <= self._limit
        return True

    def lend(self, tracker: zmq.MessageTracker, size: int) -> None:
        """Note what was lent."""
        self._lent.append((tracker, size))
        self._bytes += size

    def wait(self, deadline: float | None) -> bool:
        """Wait until the oldest is back; False where the deadline passes first."""
        if not self._lent:
            return True
        left = -1.0 if deadline is None else max(0.0, deadline - monotonic())
        try:
            self._lent[0][0].wait(left)
        except zmq.NotDone:
            return False
        self._collect()
        return True

    def _collect(self) -> None:
        while self._lent and self._lent[0][0].done:
            self._bytes -= self._lent.popleft()[1]

"""What all sending queues share: from a message to frames on a socket."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import zmq

from .codec import Codec
from .endpoint import Endpoint, Options
from .errors import MessageTooLarge, QueueFull
from .frames import DEFAULT_THRESHOLD
from .lending import MAX_LENT_BYTES, Lender

if TYPE_CHECKING:
    from typing_extensions import Unpack

M = TypeVar("M")

Frame: TypeAlias = bytes | bytearray | memoryview | zmq.Frame
"""A frame of an encoded message."""
Raw: TypeAlias = Frame | Sequence[Frame]
"""An encoded message: its frames, or its only frame."""

_LAST = int(zmq.DONTWAIT)
_MORE = int(zmq.DONTWAIT | zmq.SNDMORE)


class Sender(Endpoint, Generic[M]):
    """An endpoint that encodes and sends.

    Args:
        addr, create, options: see `Endpoint`.
        codec: of the group whose messages are sent.
        threshold: bytes from which a payload travels in a frame of its own.
        copy: False sends such frames without copying them. `put` then returns a tracker, and the
            message must not change until its `done` is true.
        max_lent_bytes: with `copy=False`, how much may be on its way at once.
    """

    def __init__(
        self,
        addr: str,
        create: bool,
        codec: Codec[M],
        *,
        threshold: int = DEFAULT_THRESHOLD,
        copy: bool = True,
        max_lent_bytes: int = MAX_LENT_BYTES,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(addr, create, **options)
        self.codec = codec
        self._threshold = threshold
        self._encode = codec.encode_frames
        self._send = self._raw.send
        self._lender = Lender(max_lent_bytes)
        self._transmit = self._transmit_copies if copy else self._transmit_lent

    def _encode_many(self, msgs: Iterable[M]) -> list[list[Any]]:
        """Encode messages into one batch where the group has one, else each for itself.

        Raises:
            EncodeError: a message does not fit its schema.
            MessageTooLarge: one is larger than the queue's limit.
        """
        batch = self.codec.batch
        if batch is not None:
            together = list(msgs)
            msgs = [batch(together)] if together else []
        encoded = [self._encode(msg, self._threshold) for msg in msgs]
        for frames in encoded:
            self._size(frames)
        return encoded

    def _transmit_copies(self, frames: Sequence[Any]) -> zmq.MessageTracker | None:
        """Send frames now, copying them.

        Raises:
            zmq.Again: there is no room.
            MessageTooLarge: and nothing was sent.
        """
        if len(frames) == 1:
            size = len(frames[0])
            if size > self._max_message_bytes:
                self._refuse_large(size)
            self._send(frames[0], _LAST)
        else:
            size = self._size(frames)
            # One call in C: a signal's handler cannot come between two frames of a message. Once
            # the first frame is taken, there is room for the others.
            list(map(self._send, frames, _flags(frames)))
        self._messages += 1
        self._bytes += size
        return None

    def _transmit_lent(self, frames: Sequence[Any]) -> zmq.MessageTracker:
        """Send frames now, lending their memory to ZeroMQ.

        Raises:
            zmq.Again: there is no room, or too much is lent already.
            MessageTooLarge: and nothing was sent.
        """
        size = self._size(frames)
        if not self._lender.has_room(size):
            raise zmq.Again
        # Frames that were received belong to ZeroMQ, which counts their references.
        tracked = [not isinstance(frame, zmq.Frame) for frame in frames]
        trackers = list(map(self._send, frames, _flags(frames), repeat(False), tracked))
        tracker = zmq.MessageTracker(*(each for each in trackers if each is not None))
        if not tracker.done:
            self._lender.lend(tracker, size)
        self._messages += 1
        self._bytes += size
        return tracker

    def _size(self, frames: Sequence[Any]) -> int:
        size = 0
        for frame in frames:
            size += frame.nbytes if isinstance(frame, memoryview) else len(frame)
        if size > self._max_message_bytes:
            self._refuse_large(size)
        return size

    def _refuse_large(self, size: int) -> None:
        raise MessageTooLarge(
            f"{self.addr}: the message has {size:,} bytes, the queue's limit is "
            f"{self._max_message_bytes:,}; give both ends a higher max_message_bytes"
        )

    def _full(self, timeout: object) -> QueueFull:
        if self._lender.bytes:
            return QueueFull(
                f"{self.addr}: {self._lender.bytes:,} bytes of earlier messages are still being "
                f"read from the caller's memory after {timeout} s; the peer is slow, or gone"
            )
        return QueueFull(
            f"{self.addr}: no peer took a message within {timeout} s; the peer is slow, gone, or "
            "not there yet"
        )


def _flags(frames: Sequence[Any]) -> list[int]:
    flags = [_MORE] * len(frames)
    flags[-1] = _LAST
    return flags


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

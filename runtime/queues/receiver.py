"""What all receiving queues share: from frames on a socket to a message."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import zmq
from msgen.runtime.codec.codec import Codec
from msgen.runtime.codec.frames import Buffer
from msgen.runtime.errors import DecodeError, MsgenError, QueueEmpty

from .endpoint import Endpoint, Options
from .sender import Frame

if TYPE_CHECKING:
    from typing_extensions import Unpack

M = TypeVar("M")

NOW = int(zmq.DONTWAIT)

DRAIN_CHUNK = 1000
"""Messages that `drain` takes at a time."""


class Receiver(Endpoint, Generic[M]):
    """An endpoint that receives and decodes.

    Args:
        addr, create, options: see `Endpoint`.
        codec: of the group whose messages are received.
    """

    def __init__(
        self, addr: str, create: bool, codec: Codec[M], **options: Unpack[Options]
    ) -> None:
        self.codec = codec
        self._decode_received = codec.decode_received
        self._held: deque[M | DecodeError] = deque()
        """Messages that `get_many` took from the socket and had no room for."""
        super().__init__(addr, create, **options)
        self._recv = self._raw.recv

    def decode(self, frames: Sequence[Frame]) -> M:
        """Decode frames of `get_raw`.

        Raises:
            DecodeError: they are no valid message; it is counted.
        """
        try:
            return self.codec.decode_frames(plain_frames(frames))
        except DecodeError:
            self._decode_errors += 1
            raise

    def empty(self) -> bool:
        """Say whether `get` would have to wait."""
        self._check_owner()
        return not self._waiting()

    def _waiting(self) -> int:
        return len(self._held) + bool(self._events() & zmq.POLLIN)

    def _unpack(self, head: bytes) -> M:
        """Decode a message whose head was received; its other frames follow on the socket."""
        self._messages += 1
        self._bytes += len(head)
        try:
            return self._decode_received(head, self._rest)
        except DecodeError:
            self._decode_errors += 1
            raise

    def _rest(self) -> list[memoryview]:
        """Receive the frames that follow the head."""
        return [frame.buffer for frame in self._following(self._raw.get(zmq.RCVMORE))]

    def _following(self, more: int) -> list[zmq.Frame]:
        """Receive the frames of a message that follow its head, without copying them."""
        frames: list[zmq.Frame] = []
        size = 0
        try:
            while more:
                frame = self._recv(NOW, False)
                more = frame.more
                size += len(frame)
                if size <= self._max_message_bytes:
                    frames.append(frame)
        except BaseException:
            # A signal's handler raised: what is left must not be taken for messages.
            while self._raw.get(zmq.RCVMORE):
                self._recv(NOW)
            raise
        self._bytes += size
        if size > self._max_message_bytes:
            raise DecodeError(
                self.codec.group,
                f"the message's frames have {size:,} bytes, the queue's limit is "
                f"{self._max_message_bytes:,}",
            )
        return frames

    def _receive_raw(self) -> list[Frame]:
        """Receive all frames of a message that is there.

        Raises:
            zmq.Again: there is none.
        """
        if self._held:
            raise MsgenError(
                f"{self.addr}: get_many holds {len(self._held)} decoded messages back; take them "
                "with get or get_many before using get_raw"
            )
        head = self._recv(NOW, False)
        self._messages += 1
        self._bytes += len(head)
        if not head.more:
            return [head.bytes]
        try:
            return [head.bytes, *self._following(1)]
        except DecodeError:
            self._decode_errors += 1
            raise

    def _take_held(self) -> M:
        first = self._held.popleft()
        if isinstance(first, DecodeError):
            raise first
        return first

    def _hold(self, head: bytes) -> None:
        """Decode a message, or each message of a batch, for `get_many` to hand out."""
        try:
            msg = self._unpack(head)
        except DecodeError as error:
            self._held.append(error)
            return
        if type(msg) is self.codec.batch:
            self._held.extend(cast("Any", msg).data)
        else:
            self._held.append(msg)

    def _hold_what_is_there(self, wanted: int) -> None:
        """Take messages off the socket without waiting, until so many are held."""
        recv = self._recv
        try:
            while len(self._held) < wanted:
                self._hold(recv(NOW))
        except zmq.Again:
            pass
        except zmq.ContextTerminated:
            raise self._closed_by_exit() from None

    def _hand_out(self, limit: int) -> list[M]:
        """Return held messages, up to the first that could not be decoded.

        Raises:
            DecodeError: that one is the first.
        """
        msgs: list[M] = []
        while self._held and len(msgs) < limit:
            if isinstance(self._held[0], DecodeError):
                if not msgs:
                    self._take_held()
                break
            msgs.append(cast("M", self._held.popleft()))
        return msgs

    def _nothing(self, timeout: object) -> QueueEmpty:
        return QueueEmpty(f"{self.addr}: no message arrived within {timeout} s")


def plain_frames(frames: Sequence[Frame]) -> list[Buffer]:
    """Return frames as buffers, ZeroMQ's own ones uncopied."""
    return [each.buffer if isinstance(each, zmq.Frame) else each for each in frames]


def check_limit(limit: int) -> None:
    """Refuse a number of messages that makes no sense."""
    if limit < 1:
        raise ValueError(f"max_messages: expected 1 or more, got {limit}")

"""What all receiving queues share: from frames on a socket to a message."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import zmq
from msgen.runtime.codec.codec import Codec
from msgen.runtime.errors import DecodeError, MsgenError, QueueEmpty

from .endpoint import Endpoint, Options, Timeout
from .frames import NOW, Frame, plain_frames

if TYPE_CHECKING:
    from typing_extensions import Unpack

M = TypeVar("M")
T = TypeVar("T")

_DRAIN_CHUNK = 1000
"""Messages that `drain` takes at a time: as many as a queue holds by default."""


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

    # Taking what is there; all of it raises zmq.Again where nothing is.

    def _get_now(self) -> M:
        if self._held:
            return self._take_held()
        return self._unpack(self._recv(NOW))

    def _get_raw_now(self) -> list[Frame]:
        """Receive all frames of a message."""
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

    def _get_many_now(self, limit: int) -> list[M]:
        """Receive messages up to the first that could not be decoded, and open batches.

        Raises:
            DecodeError: that one is the first.
        """
        held, recv = self._held, self._recv
        try:
            while len(held) < limit:
                self._hold(recv(NOW))
        except zmq.Again:
            if not held:
                raise
        msgs: list[M] = []
        while held and len(msgs) < limit:
            first = held[0]
            if isinstance(first, DecodeError):
                break
            msgs.append(first)
            del held[0]
        if not msgs:
            self._take_held()
        return msgs

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

    def _take_held(self) -> M:
        first = self._held.popleft()
        if isinstance(first, DecodeError):
            raise first
        return first

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

    # Waiting for a message

    async def _take(self, attempt: Callable[[], T], timeout: Timeout) -> T:
        """Take something as soon as it is there."""
        self._check_owner()
        try:
            return await self._until(attempt, timeout)
        except zmq.Again:
            raise QueueEmpty(
                f"{self.addr}: no message arrived within {self._seconds(timeout)} s"
            ) from None
        except zmq.ContextTerminated:
            raise self._closed_by_exit() from None

    def _many(self, max_messages: int) -> Callable[[], list[M]]:
        """Return the attempt to receive so many messages at most."""
        if max_messages < 1:
            raise ValueError(f"max_messages: expected 1 or more, got {max_messages}")
        return partial(self._get_many_now, max_messages)

    async def _drain(self, timeout: float) -> list[M]:
        msgs: list[M] = []
        try:
            while True:
                msgs += await self._take(self._many(_DRAIN_CHUNK), timeout)
        except QueueEmpty:
            pass
        except DecodeError as error:
            if not msgs:
                raise
            self._held.appendleft(error)
        except BaseException:
            self._held.extendleft(reversed(msgs))
            raise
        return msgs

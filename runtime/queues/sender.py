"""What all sending queues share: from a message to frames on a socket."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from functools import partial
from itertools import repeat
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import zmq
from msgen.runtime.codec.codec import Codec
from msgen.runtime.codec.frames import DEFAULT_THRESHOLD
from msgen.runtime.errors import MessageTooLarge, QueueFull, SecurityError
from msgen.runtime.sockets.outflow import KNOWN, Outflow

from .endpoint import Endpoint, Options, Timeout
from .frames import MORE, NOW, Loans, size_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

MAX_LENT_BYTES = 256 << 20
"""Bytes of messages that may be on their way out without having been copied."""
RETRY_S = 0.001
"""Between attempts while a loan or a refusal is waited for, which no descriptor tells of."""

M = TypeVar("M")

_log = logging.getLogger("msgen.runtime.queues")


class SendingOptions(Options, total=False):
    """The options of a sending endpoint; `Sender` says what they mean."""

    threshold: int
    copy: bool
    max_lent_bytes: int


class Sender(Endpoint, Generic[M]):
    """An endpoint that encodes and sends.

    Args:
        addr, create, options: see `Endpoint`.
        codec: of the group whose messages are sent.
        threshold: bytes from which a payload travels in a frame of its own.
        copy: False sends frames of 64 KiB and more without copying them. `put` then returns a
            tracker, and the message must not change until its `done` is true.
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
        self.codec = codec
        self._encode = codec.encoder(threshold)
        self._loans = None if copy else Loans(max_lent_bytes)
        self._outflow: Outflow | None = None
        secured = options.get("security") is not None
        self._may_be_refused = KNOWN and secured and not create
        super().__init__(addr, create, **options)
        self._send = self._raw.send

    def _configure(self, socket: zmq.Socket[bytes]) -> None:
        super()._configure(socket)
        if KNOWN and self._address.transport != "inproc":
            self._outflow = Outflow(socket, connects=not self._binds)

    # Sending

    def _transmit(self, frames: Any) -> zmq.MessageTracker | None:
        """Send a message's only frame, or its frames, now.

        Returns:
            With `copy=False`, a tracker of all of them.

        Raises:
            zmq.Again: there is no room, or too much is lent already.
            MessageTooLarge: and nothing was sent.
        """
        if type(frames) is not bytes or self._loans is not None:
            return self._transmit_frames(frames)
        size = len(frames)
        if size > self._max_message_bytes:
            self._refuse_size(size)
        self._send(frames, NOW)
        self._messages += 1
        self._bytes += size
        return None

    def _transmit_frames(self, frames: Any) -> zmq.MessageTracker | None:
        if type(frames) is bytes:
            frames = (frames,)
        size = self._size(frames)
        flags = [MORE] * len(frames)
        flags[-1] = NOW
        tracker = None
        # One call in C: a signal's handler cannot come between two frames of a message. Once the
        # first frame is taken, there is room for the others.
        if self._loans is None:
            list(map(self._send, frames, flags))
        elif not self._loans.has_room(size):
            raise zmq.Again
        else:
            # Frames that were received belong to ZeroMQ, which counts their references.
            tracked = [not isinstance(frame, zmq.Frame) for frame in frames]
            trackers = list(map(self._send, frames, flags, repeat(False), tracked))
            tracker = zmq.MessageTracker(*(x for x in trackers if x is not None))
            self._loans.add(tracker, size)
        self._messages += 1
        self._bytes += size
        return tracker

    def _size(self, frames: Any) -> int:
        """Return the bytes of a message.

        Raises:
            MessageTooLarge: they are more than the limit.
            TypeError: a frame is no contiguous memory.
        """
        size = size_of(frames)
        if size > self._max_message_bytes:
            self._refuse_size(size)
        return size

    def _refuse_size(self, size: int) -> None:
        raise MessageTooLarge(
            f"{self.addr}: the message has {size:,} bytes, the queue's limit is "
            f"{self._max_message_bytes:,}; give both ends a higher max_message_bytes"
        )

    def _encode_many(self, msgs: Iterable[M]) -> list[Any]:
        """Encode messages into one batch where the group has one, else each for itself.

        Raises:
            EncodeError: a message does not fit its schema.
            MessageTooLarge: one is larger than the queue's limit.
        """
        self._check_owner()
        batch = self.codec.batch
        if batch is not None:
            together = list(msgs)
            msgs = [batch(together)] if together else []
        encoded = [self._encode(msg) for msg in msgs]
        for frames in encoded:
            self._size(frames)
        return encoded

    # Waiting for room

    async def _put_frames(
        self, frames: Any, timeout: Timeout
    ) -> zmq.MessageTracker | None:
        """Send an encoded message as soon as there is room for it."""
        try:
            return await self._until(
                partial(self._transmit_or_tell, frames),
                timeout,
                partial(self._unsignalled, frames),
            )
        except zmq.Again:
            raise self._full(frames, self._seconds(timeout)) from None
        except zmq.ContextTerminated:
            raise self._closed_by_exit() from None

    async def _put_each(self, encoded: list[Any], timeout: Timeout) -> None:
        """Send encoded messages, one after the other."""
        deadline = self._deadline(timeout)
        for sent, frames in enumerate(encoded):
            try:
                await self._put_frames(frames, max(0.0, deadline - monotonic()))
            except QueueFull as error:
                error.sent = sent
                raise

    def _transmit_or_tell(self, frames: Any) -> zmq.MessageTracker | None:
        """Send a message, or say so where waiting is in vain.

        Raises:
            SecurityError: the end that binds did not accept this one's key.
            zmq.Again, MessageTooLarge: as for `_transmit`.
        """
        try:
            return self._transmit(frames)
        except zmq.Again:
            if self._may_be_refused and self._outflow and self._outflow.refused():
                raise SecurityError(
                    f"{self.addr}: the end that binds refused this end's key, and takes no message "
                    "from it; give it a key that is on the list there, or add this one"
                ) from None
            raise

    def _unsignalled(self, frames: Any) -> bool:
        """Say whether a refusal or lent memory is waited for, which the socket does not signal."""
        return self._may_be_refused or not self._may_lend(frames)

    def _may_lend(self, frames: Any) -> bool:
        return self._loans is None or self._loans.has_room(size_of(frames))

    def _full(self, frames: Any, timeout: float | None) -> QueueFull:
        # What is left of a longer timeout is no round number.
        waited = f"{round(timeout or 0, 3):g}"
        if self._loans is not None and not self._may_lend(frames):
            return QueueFull(
                f"{self.addr}: {self._loans.lent:,} bytes of earlier messages are still being "
                f"read from the caller's memory after {waited} s; the peer is slow, or gone"
            )
        return QueueFull(
            f"{self.addr}: no peer took a message within {waited} s; the peer is slow, gone, or "
            "not there yet"
        )

    # Arriving

    async def _drain(self, timeout: Timeout) -> bool:
        self._check_owner()
        outflow = self._outflow
        if self._address.transport == "inproc" or not self._messages:
            return True
        if outflow is None:
            return False
        for pause in outflow.looks(self._deadline(timeout)):
            await self._pause(pause)
            self._check_owner()
        return outflow.arrived

    def _before_closing(self, deadline: float) -> None:
        outflow, self._outflow = self._outflow, None
        if outflow is None:
            return
        try:
            if (
                deadline > monotonic()
                and self._messages
                and not outflow.wait(deadline)
                and not outflow.receiver_left
            ):
                _log.warning(
                    "%s: stopped while messages were on their way; what had not arrived within "
                    "the linger time may be dropped",
                    self.addr,
                )
        finally:
            outflow.close()

    def _linger_ms(self, deadline: float) -> int:
        return math.ceil(max(0.0, deadline - monotonic()) * 1000)

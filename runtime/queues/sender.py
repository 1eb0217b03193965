"""What all sending queues share: from a message to frames on a socket."""

from __future__ import annotations

import logging
import math
import select
from collections.abc import Iterable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import zmq
from msgen.runtime.codec.codec import Codec
from msgen.runtime.codec.frames import DEFAULT_THRESHOLD
from msgen.runtime.errors import QueueFull, SecurityError
from msgen.runtime.sockets.carriers import MAX_LENT_BYTES, Copying, Lending
from msgen.runtime.sockets.outflow import KNOWN, Outflow

from .endpoint import DEFAULT, MAX_MESSAGE_BYTES, Endpoint, Options, Timeout

if TYPE_CHECKING:
    from typing_extensions import Unpack

M = TypeVar("M")

_log = logging.getLogger(__name__)

Frame: TypeAlias = bytes | bytearray | memoryview | zmq.Frame
"""A frame of an encoded message."""
Raw: TypeAlias = Frame | Sequence[Frame]
"""An encoded message: its frames, or its only frame."""


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

    _carrier: Copying = None  # type: ignore[assignment]
    """None until the constructor has opened the socket."""

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
        self._outflow: Outflow | None = None
        super().__init__(addr, create, **options)
        carrier = (
            self._raw.send,
            self.addr,
            options.get("max_message_bytes", MAX_MESSAGE_BYTES),
        )
        self._carrier = Copying(*carrier) if copy else Lending(*carrier, max_lent_bytes)
        self._transmit = self._carrier.transmit
        self._may_be_refused = (
            self._outflow is not None
            and not create
            and options.get("security") is not None
        )
        if self._may_be_refused:
            assert self._outflow is not None
            self._poll.register(self._outflow.descriptor, select.POLLIN)

    def _encode_many(self, msgs: Iterable[M]) -> list[bytes | list[Any]]:
        """Encode messages into one batch where the group has one, else each for itself.

        Raises:
            EncodeError: a message does not fit its schema.
            MessageTooLarge: one is larger than the queue's limit.
        """
        batch = self.codec.batch
        if batch is not None:
            together = list(msgs)
            msgs = [batch(together)] if together else []
        encoded = [self._encode(msg) for msg in msgs]
        for frames in encoded:
            self._carrier.size(frames)
        return encoded

    def _configure(self, socket: zmq.Socket[bytes]) -> None:
        if KNOWN and not self._inside:
            self._outflow = Outflow(socket, connects=not self._binds)

    def drain(self, timeout: Timeout = DEFAULT) -> bool:
        """Wait until all that was put has arrived.

        Over ipc the receiving process has read it then, though not necessarily got it from its
        queue; over tcp its system has acknowledged it; inside a process it arrives at once.

        Args:
            timeout: seconds to wait; None waits for ever.

        Returns:
            Whether it has. False, too, on systems other than Linux, which do not tell.

        Raises:
            QueueClosed, WrongThread, WrongProcess: the queue cannot be used here.
        """
        self._check_owner()
        if self._inside or not self._carrier.messages:
            return True
        return self._outflow is not None and self._outflow.wait(self._deadline(timeout))

    def _before_closing(self, deadline: float) -> None:
        outflow, self._outflow = self._outflow, None
        if outflow is None:
            return
        try:
            if (
                deadline > monotonic()
                and self._carrier is not None
                and self._carrier.messages
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

    def _shut(self, socket: zmq.Socket[bytes], deadline: float) -> None:
        socket.close(linger=math.ceil(max(0.0, deadline - monotonic()) * 1000))

    def _counts(self) -> tuple[int, int]:
        return self._carrier.messages, self._carrier.bytes

    def _check_let_in(self) -> None:
        """Raise where waiting is in vain: the end that binds did not accept this one's key."""
        if (
            self._may_be_refused
            and self._outflow is not None
            and self._outflow.refused()
        ):
            raise SecurityError(
                f"{self.addr}: the end that binds refused this end's key, and takes no message "
                "from it; give it a key that is on the list there, or add this one"
            )

    def _full(self, frames: Any, timeout: float | None) -> QueueFull:
        # What is left of a longer timeout is no round number.
        waited = f"{round(timeout or 0, 3):g}"
        if not self._carrier.has_room(frames):
            return QueueFull(
                f"{self.addr}: {self._carrier.lent:,} bytes of earlier messages are still being "
                f"read from the caller's memory after {waited} s; the peer is slow, or gone"
            )
        return QueueFull(
            f"{self.addr}: no peer took a message within {waited} s; the peer is slow, gone, or "
            "not there yet"
        )


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

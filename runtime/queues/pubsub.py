"""PUB and SUB: each message goes to every subscriber of the moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import zmq
from msgen.runtime.codec.codec import Codec
from msgen.runtime.errors import SubscribersMissing

from .blocking import BlockingSender, ReceivingQueue, SendingQueue
from .endpoint import DEFAULT, Timeout
from .frames import NOW
from .sender import SendingOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

M = TypeVar("M")

_SUBSCRIPTIONS_EVERY = 256
"""Messages after which subscriptions are read: unread ones pile up, and to look costs half a put."""


class Publisher(BlockingSender[M]):
    """A sender to all who have subscribed: one that does not keep up makes it wait."""

    _socket_type = zmq.XPUB

    def _configure(self, socket: zmq.Socket[bytes]) -> None:
        super()._configure(socket)
        socket.set(zmq.XPUB_VERBOSER, 1)
        socket.set(zmq.XPUB_NODROP, 1)

    def _look(self) -> None:
        while self._events() & zmq.POLLIN:
            self._take_upstream(self._raw.recv(NOW))

    def _take_upstream(self, message: bytes) -> None:
        """Take in what a subscriber has sent: by its first byte, most often a subscription."""
        raise NotImplementedError


class ZmqPubQueue(SendingQueue[M], Publisher[M]):
    """The publishing end of PUB and SUB.

    A message goes to those who have subscribed when it is put, and to nobody else;
    `wait_for_subscribers` waits for them. A subscriber that does not keep up makes `put` wait, and
    one that is gone is forgotten.
    """

    def __init__(
        self,
        addr: str,
        create: bool,
        codec: Codec[M],
        **options: Unpack[SendingOptions],
    ) -> None:
        super().__init__(addr, create, codec, **options)
        self._subscribers = 0

    @property
    def subscribers(self) -> int:
        """How many subscribers there are now."""
        self._check_owner()
        self._look()
        return self._subscribers

    def wait_for_subscribers(self, n: int, timeout: Timeout = DEFAULT) -> None:
        """Wait until so many have subscribed.

        Args:
            n: how many.
            timeout: seconds; None waits for ever.

        Raises:
            SubscribersMissing: there were fewer until then.
            QueueClosed, WrongThread, WrongProcess: as for `put`.
        """
        self._check_owner()
        deadline = self._deadline(timeout)
        while self.subscribers < n:
            if not self._wait(deadline):
                raise SubscribersMissing(
                    f"{self.addr}: {self._subscribers} of {n} subscribers are there after "
                    f"{self._seconds(timeout)} s",
                    (),
                )

    def _transmit(self, frames: Any) -> zmq.MessageTracker | None:
        if self._messages % _SUBSCRIPTIONS_EVERY == 0:
            self._look()
        return super()._transmit(frames)

    def _take_upstream(self, message: bytes) -> None:
        self._subscribers += 1 if message[:1] == b"\1" else -1


class ZmqSubQueue(ReceivingQueue[M]):
    """The subscribing end of PUB and SUB: it gets every message put after it subscribed."""

    _socket_type = zmq.SUB

    def _configure(self, socket: zmq.Socket[bytes]) -> None:
        super()._configure(socket)
        socket.subscribe(b"")

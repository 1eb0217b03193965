"""What both publishing ends share: a socket that never drops and hears of its subscribers."""

from __future__ import annotations

from collections.abc import Iterator

import zmq

from .receiver import NOW
from .sender import M, Sender


class Publisher(Sender[M]):
    """A sender to all who have subscribed: one that does not keep up makes it wait."""

    _socket_type = zmq.XPUB

    def _configure(self, socket: zmq.Socket[bytes]) -> None:
        super()._configure(socket)
        socket.set(zmq.XPUB_VERBOSER, 1)
        socket.set(zmq.XPUB_NODROP, 1)

    def _upstream(self) -> Iterator[bytes]:
        """Receive what has come from subscribers; at its end the socket has been looked at."""
        while self._events() & zmq.POLLIN:
            yield self._raw.recv(NOW)

"""The queue of requests, as rank 0 takes them: undecoded, and as many as are there.

Pings come the same way. Their first byte is the one that msgpack never uses, so that no message of
any group begins like one.

It waits inside ZeroMQ, which is the fastest way to be woken by a message, and returns now and then
so that rank 0 can look at other things.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from threading import get_ident
from typing import TYPE_CHECKING

import zmq
from msgen.runtime.codec.codec import Codec
from msgen.runtime.errors import DecodeError
from msgen.runtime.queues import Frame, ZmqPullQueue
from msgen.runtime.queues.endpoint import Options
from msgen.runtime.queues.frames import NOW
from msgen.runtime.queues.receiver import M

if TYPE_CHECKING:
    from typing_extensions import Unpack

PING = b"\xc1msgping\x01"
"""What a ping begins with; its token follows."""

_WAIT_MS = 100
"""How late an idle rank 0 sees a stop or a lost rank; it wakes ten times a second for that."""
_WAIT = 0
_EVENTS = int(zmq.EVENTS)
_MORE = int(zmq.RCVMORE)
_POLLIN = int(zmq.POLLIN)


class RequestQueue(ZmqPullQueue[M]):
    """The receiving end of requests, to be read by `take` alone.

    Attributes:
        pings: tokens of those that were taken; whoever answers them empties the list.
        refused: errors of requests whose frames together are larger than the limit.
    """

    def __init__(
        self, addr: str, create: bool, codec: Codec[M], **options: Unpack[Options]
    ) -> None:
        self.pings: list[bytes] = []
        self.refused: list[DecodeError] = []
        super().__init__(addr, create, codec, **options)

    def _configure(self, socket: zmq.Socket[bytes]) -> None:
        super()._configure(socket)
        socket.set(zmq.RCVTIMEO, _WAIT_MS)

    def take(self, limit: int, wait: bool) -> list[Sequence[Frame]]:
        """Take the frames of requests that are there, at most so many.

        Args:
            limit: how many.
            wait: whether to wait for the first, for a tenth of a second.

        Raises:
            QueueClosed, WrongThread, WrongProcess: the queue cannot be used here.
        """
        if get_ident() != self._owner:
            self._refuse()
        taken: list[Sequence[Frame]] = []
        recv, get = self._recv, self._raw.get
        try:
            head = recv(_WAIT if wait else NOW)
            if get(_MORE) or head.startswith(PING):
                self._take_any(head, taken)
            else:
                taken.append((head,))
                self._count(head)
            # Most often there is one alone: to look costs less than to try in vain.
            if limit > 1 and get(_EVENTS) & _POLLIN:
                for _ in repeat(None, limit - 1):
                    self._take_any(recv(NOW), taken)
        except zmq.Again:
            pass
        except zmq.ContextTerminated:
            raise self._closed_by_exit() from None
        return taken

    def _count(self, head: bytes) -> None:
        self._messages += 1
        self._bytes += len(head)

    def _take_any(self, head: bytes, taken: list[Sequence[Frame]]) -> None:
        """Take a message of any kind whose head was received."""
        self._count(head)
        if self._raw.get(_MORE):
            try:
                taken.append([head, *self._following(1)])
            except DecodeError as error:
                self._decode_errors += 1
                self.refused.append(error)
        elif head.startswith(PING):
            self.pings.append(head[len(PING) :])
        else:
            taken.append((head,))

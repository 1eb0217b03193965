"""Turns: coroutines that wait for one socket, served in the order they came.

A coroutine that finds nothing to take queues up. Whenever the socket's descriptor says that
something happened, the first in the queue tries again; it leaves the queue only with what it came
for, by its timeout or by being cancelled, and then lets the next one try. Taking is one synchronous
call, so a cancelled coroutine has taken nothing and nothing is lost.

The socket's own queue is the buffer: messages stay in it, bounded by its high-water mark, until a
coroutine takes them. Under load a coroutine finds a message without waiting; so that the event
loop's other tasks get their share, it yields to them when it has not done so for a millisecond.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import TypeVar

import zmq

T = TypeVar("T")

_SLICE_S = 0.001
"""Seconds that a coroutine which never has to wait keeps the event loop."""
_RETRY_S = 0.001
"""Seconds between looks at what no descriptor tells: whether lent memory is back."""


class Expired(Exception):
    """A coroutine's timeout has passed."""


class Turns:
    """Coroutines that wait for one direction of a socket.

    Args:
        signal: the socket's descriptor.
        ready: says whether the socket has what they wait for; looks at the socket, so that the
            descriptor tells of later events.

    Attributes:
        queue: those who wait, in order; a coroutine may take something itself where nobody does.
        slice_ends: when, on the monotonic clock, the loop's other tasks are due; from then on
            nothing should be taken but by `take`.
    """

    def __init__(self, signal: int, ready: Callable[[], bool]) -> None:
        self._signal = signal
        self._ready = ready
        self.queue: deque[asyncio.Future[None]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watching = False
        self.slice_ends = 0.0
        self._error: Exception | None = None

    async def take(
        self,
        attempt: Callable[[], T],
        timeout: float | None,
        *,
        unsignalled: Callable[[], bool] | None = None,
    ) -> T:
        """Wait for a turn and attempt then, until it succeeds.

        Args:
            attempt: takes what the coroutine came for, or raises zmq.Again.
            timeout: seconds; None waits for ever.
            unsignalled: says whether what is waited for may come without a signal now, so that it
                has to be looked for again and again.

        Raises:
            Expired: no attempt succeeded in time.
            zmq.ZMQError, DecodeError, MsgenError: what the attempt raised, or `stop` was given.
        """
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        ticket: asyncio.Future[None] = loop.create_future()
        self.queue.append(ticket)
        try:
            if monotonic() >= self.slice_ends:
                # It keeps its place while the others run.
                self.slice_ends = monotonic() + _SLICE_S
                await asyncio.sleep(0)
            while True:
                if self._error is not None:
                    raise self._error.with_traceback(None)
                # Asked before the attempt: what comes without a signal may come right after it.
                look_again = unsignalled is not None and unsignalled()
                if self.queue[0] is ticket:
                    try:
                        return attempt()
                    except zmq.Again:
                        pass
                if deadline is not None and loop.time() >= deadline:
                    raise Expired
                self._watch(loop)
                wake_at = deadline
                if look_again:
                    soon = loop.time() + _RETRY_S
                    wake_at = soon if deadline is None else min(soon, deadline)
                timer = (
                    None if wake_at is None else loop.call_at(wake_at, _wake, ticket)
                )
                try:
                    await ticket
                finally:
                    if timer is not None:
                        timer.cancel()
                self.slice_ends = monotonic() + _SLICE_S
                place = self.queue.index(ticket)
                ticket = self.queue[place] = loop.create_future()
        finally:
            self.queue.remove(ticket)
            self.look()

    def look(self) -> None:
        """Wake the first in the queue if the socket has something for it.

        To be called after every other look at the socket, which takes the signal away.
        """
        if self.queue and self._error is None and self._ready():
            _wake(self.queue[0])

    def stop(self, error: Exception) -> None:
        """End all waits with an error."""
        self._unwatch()
        self._error = error
        for ticket in self.queue:
            _wake(ticket)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop is not loop:
            self._unwatch()
            self._loop = loop
        if not self._watching:
            loop.add_reader(self._signal, self._on_signal)
            self._watching = True

    def _unwatch(self) -> None:
        if self._watching and self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._signal)
        self._watching = False

    def _on_signal(self) -> None:
        if not self.queue:
            # Nobody waits: under load, being told of each arrival would cost more than it helps.
            self._unwatch()
            return
        self.look()


def _wake(ticket: asyncio.Future[None]) -> None:
    if not ticket.done():
        ticket.set_result(None)

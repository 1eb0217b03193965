"""PUSH and PULL with calls that are coroutines, on an asyncio event loop.

They do not wrap zmq.asyncio, which makes a future for every message: a message that is there is
taken without leaving the coroutine. Any loop with `add_reader` does, uvloop's too.

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
from collections.abc import Callable, Iterable, Sized
from threading import get_ident
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import zmq
from msgen.runtime.errors import QueueClosed

from .endpoint import DEFAULT, Endpoint, Timeout
from .frames import NOW, Frame, Raw, frames_of
from .receiver import Receiver
from .sender import RETRY_S, Sender

if TYPE_CHECKING:
    from typing_extensions import Self

M = TypeVar("M")
T = TypeVar("T")

_SLICE_S = 0.001
"""That a coroutine which never has to wait keeps the loop: short beside a step of an engine."""


class Turns:
    """Coroutines that wait for one direction of a socket, served in the order they came.

    Args:
        socket: what they wait for.
        event: zmq.POLLIN or zmq.POLLOUT.
        held: messages beside the socket's, of which there may be some.

    """

    def __init__(self, socket: zmq.Socket[Any], event: int, held: Sized = ()) -> None:
        self._socket = socket
        self._event = event
        self._held = held
        self._signal = int(socket.get(zmq.FD))
        self.queue: deque[asyncio.Future[None]] = deque()
        self.slice_ends = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watching = False
        self._error: Exception | None = None

    async def take(
        self,
        attempt: Callable[[], T],
        timeout: float | None,
        unsignalled: Callable[[], bool] | None,
    ) -> T:
        """Wait for a turn and attempt then, until it succeeds; see `Endpoint._until`."""
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
                # Asked before: what comes without a signal may come right after the attempt.
                soon = unsignalled is not None and unsignalled()
                if self.queue[0] is ticket:
                    try:
                        return attempt()
                    except zmq.Again:
                        pass
                if deadline is not None and loop.time() >= deadline:
                    raise zmq.Again
                self._watch(loop)
                wake_at = [] if deadline is None else [deadline]
                if soon:
                    wake_at.append(loop.time() + RETRY_S)
                timer = loop.call_at(min(wake_at), _wake, ticket) if wake_at else None
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
        """Wake the first in the queue if there is something for it.

        To be called after every other look at the socket, which takes the signal away.
        """
        if self.queue and self._error is None and self._is_ready():
            _wake(self.queue[0])

    def _is_ready(self) -> bool:
        return bool(self._held) or bool(int(self._socket.get(zmq.EVENTS)) & self._event)

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
            # Nobody waits: under load, a callback for each arrival would cost more than it helps.
            self._unwatch()
            return
        self.look()


def _wake(ticket: asyncio.Future[None]) -> None:
    if not ticket.done():
        ticket.set_result(None)


class OnLoop(Endpoint):
    """An endpoint whose waits suspend a coroutine."""

    _turns: Turns

    async def _until(
        self,
        attempt: Callable[[], T],
        timeout: Timeout,
        unsignalled: Callable[[], bool] | None = None,
    ) -> T:
        return await self._turns.take(attempt, self._seconds(timeout), unsignalled)

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def _close(self, deadline: float) -> None:
        self._turns.stop(QueueClosed(f"{self.addr}: the queue was stopped meanwhile"))
        super()._close(deadline)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.stop()


class ZmqAsyncPushQueue(OnLoop, Sender[M]):
    """The sending end of PUSH and PULL, for coroutines; see `ZmqPushQueue`.

    Coroutines that wait are served in the order they came.
    """

    _socket_type = zmq.PUSH

    def _configure(self, socket: zmq.Socket[bytes]) -> None:
        super()._configure(socket)
        self._turns = Turns(socket, zmq.POLLOUT)

    async def put(
        self, msg: M, timeout: Timeout = DEFAULT
    ) -> zmq.MessageTracker | None:
        """Send a message.

        The caller may change the message, and its tensors, as soon as this returns; with
        `copy=False`, as soon as the tracker that it returns is done. Cancelled, it has either
        sent the whole message or nothing, and it says which: it raises only if nothing was sent.

        Args:
            msg: a message of the codec's group.
            timeout: seconds to wait while the queue is full; None waits for ever.

        Raises:
            EncodeError: the message does not fit its schema; nothing was sent.
            MessageTooLarge: it is larger than the queue's limit; nothing was sent.
            QueueFull: nothing could be sent in time.
            QueueClosed, WrongThread, WrongProcess: the queue cannot be used here, or was stopped.
        """
        self._check_owner()
        return await self._put_frames(self._encode(msg), timeout)

    async def put_many(self, msgs: Iterable[M], timeout: Timeout = DEFAULT) -> None:
        """Send messages, as one batch message where the group has one; see `ZmqPushQueue`."""
        await self._put_each(self._encode_many(msgs), timeout)

    async def put_raw(
        self, raw: Raw, timeout: Timeout = DEFAULT
    ) -> zmq.MessageTracker | None:
        """Send an encoded message; see `ZmqPushQueue`."""
        self._check_owner()
        return await self._put_frames(
            raw if type(raw) is bytes else frames_of(raw), timeout
        )

    async def _put_frames(
        self, frames: Any, timeout: Timeout
    ) -> zmq.MessageTracker | None:
        turns = self._turns
        if not turns.queue and monotonic() < turns.slice_ends:
            try:
                return self._transmit(frames)
            except zmq.ZMQError:
                pass  # It is full, or the process is exiting, as the next attempt finds out, too.
        return await super()._put_frames(frames, timeout)

    async def drain(self, timeout: Timeout = DEFAULT) -> bool:
        """Wait until all that was put has arrived; see `ZmqPushQueue`."""
        return await self._drain(timeout)

    async def __aexit__(self, *error: object) -> None:
        try:
            if self._socket is not None:
                await self.drain(self.linger_s)
        finally:
            self.stop()


class ZmqAsyncPullQueue(OnLoop, Receiver[M]):
    """The receiving end of PUSH and PULL, for coroutines; see `ZmqPullQueue`.

    Coroutines that wait are served in the order they came. One that is cancelled has taken
    nothing.
    """

    _socket_type = zmq.PULL

    def _configure(self, socket: zmq.Socket[bytes]) -> None:
        super()._configure(socket)
        self._turns = Turns(socket, zmq.POLLIN, self._held)

    async def get(self, timeout: Timeout = DEFAULT) -> M:
        """Receive a message.

        Args:
            timeout: seconds to wait for one; None waits for ever.

        Raises:
            DecodeError: what arrived is no valid message; it is taken off the queue and counted,
                and the next call gets the next one.
            QueueEmpty: nothing arrived in time.
            QueueClosed, WrongThread, WrongProcess: the queue cannot be used here, or was stopped.
        """
        turns = self._turns
        if get_ident() != self._owner:
            self._refuse()
        if not (turns.queue or self._held) and monotonic() < turns.slice_ends:
            try:
                head = self._recv(NOW)
            except zmq.ZMQError:
                pass  # As in `_put_frames` of the sending end.
            else:
                return self._unpack(head)
        return await self._take(self._get_now, timeout)

    async def get_many(self, max_messages: int, timeout: Timeout = DEFAULT) -> list[M]:
        """Receive what is there, at least one message; see `ZmqPullQueue`."""
        return await self._take(self._many(max_messages), timeout)

    async def get_raw(self, timeout: Timeout = DEFAULT) -> list[Frame]:
        """Receive the frames of a message without decoding them; see `ZmqPullQueue`."""
        return await self._take(self._get_raw_now, timeout)

    async def drain(self, timeout: float = 0.0) -> list[M]:
        """Receive all that is there; see `ZmqPullQueue`. Cancelled, it keeps what it had taken."""
        try:
            return await self._drain(timeout)
        finally:
            self._turns.look()

    def _waiting(self) -> int:
        waiting = super()._waiting()
        # That look took the signal that coroutines wait for.
        self._turns.look()
        return waiting

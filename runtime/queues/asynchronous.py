"""Queues whose calls are coroutines: PUSH and PULL on an asyncio event loop.

They do not wrap zmq.asyncio, which makes a future for every message: a message that is there is
taken without leaving the coroutine. Any loop with `add_reader` does, uvloop's too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sized
from functools import partial
from threading import get_ident
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import zmq
from msgen.runtime.codec.codec import Codec
from msgen.runtime.errors import DecodeError, QueueClosed, QueueEmpty, QueueFull
from msgen.runtime.sockets.outflow import LOOK_EVERY_S

from .endpoint import DEFAULT, Endpoint, Options, Timeout, time_left
from .receiver import DRAIN_CHUNK, NOW, Receiver, check_limit
from .sender import Frame, Raw, Sender, SendingOptions, frames_of
from .turns import Expired, Turns

if TYPE_CHECKING:
    from typing_extensions import Unpack

M = TypeVar("M")
T = TypeVar("T")
A = TypeVar("A", bound="_OnLoop")


class _OnLoop(Endpoint):
    """What both directions share: coroutines that wait for their turn."""

    _turns: Turns | None = None

    def _close(self, deadline: float) -> None:
        if self._turns is not None:
            self._turns.stop(
                QueueClosed(f"{self.addr}: the queue was stopped meanwhile")
            )
        super()._close(deadline)

    async def __aenter__(self: A) -> A:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


def _has_room(raw: Any) -> bool:
    return bool(raw.get(zmq.EVENTS) & zmq.POLLOUT)


def _has_message(raw: Any, held: Sized) -> bool:
    return bool(held) or bool(raw.get(zmq.EVENTS) & zmq.POLLIN)


class ZmqAsyncPushQueue(_OnLoop, Sender[M]):
    """The sending end of PUSH and PULL, for coroutines; see `ZmqPushQueue`.

    Coroutines that wait are served in the order they came.
    """

    _socket_type = zmq.PUSH
    _turns: Turns

    def __init__(
        self,
        addr: str,
        create: bool,
        codec: Codec[M],
        **options: Unpack[SendingOptions],
    ) -> None:
        super().__init__(addr, create, codec, **options)
        self._turns = Turns(self._signal, partial(_has_room, self._raw))

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
        if get_ident() != self._owner:
            self._refuse()
        return await self._put_frames(self._encode(msg), timeout)

    async def drain(self, timeout: Timeout = DEFAULT) -> bool:  # type: ignore[override]
        """Wait until all that was put has arrived; see `ZmqPushQueue`."""
        self._check_owner()
        outflow = self._outflow
        if self._inside or not self._carrier.messages:
            return True
        if outflow is None:
            return False
        deadline = self._deadline(timeout)
        while not outflow.ended():
            if deadline is not None and monotonic() >= deadline:
                return False
            await asyncio.sleep(LOOK_EVERY_S)
            self._check_owner()
        return not outflow.receiver_left

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if self._socket is not None and self._carrier.messages:
                await self.drain(self.linger_s)
        finally:
            self.stop()

    async def put_many(self, msgs: Iterable[M], timeout: Timeout = DEFAULT) -> None:
        """Send messages, as one batch message where the group has one; see `ZmqPushQueue`."""
        self._check_owner()
        encoded = self._encode_many(msgs)
        deadline = self._deadline(timeout)
        for sent, frames in enumerate(encoded):
            try:
                await self._put_frames(frames, time_left(deadline))
            except QueueFull as error:
                error.sent = sent
                raise

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
        try:
            if not turns.queue and monotonic() < turns.slice_ends:
                try:
                    return self._transmit(frames)
                except zmq.Again:
                    pass
            return await turns.take(
                partial(self._transmit_or_tell, frames),
                self._seconds(timeout),
                unsignalled=lambda: (
                    self._may_be_refused or not self._carrier.has_room(frames)
                ),
            )
        except Expired:
            raise self._full(frames, self._seconds(timeout)) from None
        except zmq.ContextTerminated:
            raise self._closed_by_exit() from None

    def _transmit_or_tell(self, frames: Any) -> zmq.MessageTracker | None:
        try:
            return self._transmit(frames)
        except zmq.Again:
            self._check_let_in()
            raise


class ZmqAsyncPullQueue(_OnLoop, Receiver[M]):
    """The receiving end of PUSH and PULL, for coroutines; see `ZmqPullQueue`.

    Coroutines that wait are served in the order they came. One that is cancelled has taken
    nothing.
    """

    _socket_type = zmq.PULL
    _turns: Turns

    def __init__(
        self, addr: str, create: bool, codec: Codec[M], **options: Unpack[Options]
    ) -> None:
        super().__init__(addr, create, codec, **options)
        self._turns = Turns(self._signal, partial(_has_message, self._raw, self._held))

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
            except zmq.Again:
                pass
            except zmq.ContextTerminated:
                raise self._closed_by_exit() from None
            else:
                return self._unpack(head)
        return await self._in_turn(self._get_now, timeout)

    async def get_many(self, max_messages: int, timeout: Timeout = DEFAULT) -> list[M]:
        """Receive what is there, at least one message; see `ZmqPullQueue`."""
        self._check_owner()
        check_limit(max_messages)
        return await self._in_turn(partial(self._get_many_now, max_messages), timeout)

    async def get_raw(self, timeout: Timeout = DEFAULT) -> list[Frame]:
        """Receive the frames of a message without decoding them; see `ZmqPullQueue`."""
        self._check_owner()
        return await self._in_turn(self._receive_raw, timeout)

    async def drain(self, timeout: float = 0.0) -> list[M]:
        """Receive all that is there; see `ZmqPullQueue`. Cancelled, it keeps what it had taken."""
        msgs: list[M] = []
        try:
            while True:
                msgs += await self.get_many(DRAIN_CHUNK, timeout)
        except QueueEmpty:
            pass
        except DecodeError as error:
            if not msgs:
                raise
            self._held.appendleft(error)
        except BaseException:
            self._held.extendleft(reversed(msgs))
            self._turns.look()
            raise
        return msgs

    def _get_now(self) -> M:
        if self._held:
            return self._take_held()
        return self._unpack(self._recv(NOW))

    def _get_many_now(self, limit: int) -> list[M]:
        while not self._held:
            self._hold(self._recv(NOW))
        self._hold_what_is_there(limit)
        return self._hand_out(limit)

    async def _in_turn(self, attempt: Callable[[], T], timeout: Timeout) -> T:
        try:
            return await self._turns.take(attempt, self._seconds(timeout))
        except Expired:
            raise self._nothing(self._seconds(timeout)) from None
        except zmq.ContextTerminated:
            raise self._closed_by_exit() from None

    def _waiting(self) -> int:
        waiting = super()._waiting()
        # That look took the signal that coroutines wait for.
        self._turns.look()
        return waiting

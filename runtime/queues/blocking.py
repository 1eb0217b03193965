"""PUSH and PULL with calls that block.

What sending and receiving share with the asynchronous queues are coroutines, in `sender` and
`receiver`. Here their waits block the thread instead of suspending, so one step runs each to its
end.
"""

from __future__ import annotations

import math
import select
import time
from collections.abc import Callable, Coroutine, Iterable
from threading import get_ident
from time import monotonic
from typing import Any, TypeVar

import zmq

from .endpoint import DEFAULT, Endpoint, Timeout
from .frames import NOW, Frame, Raw, frames_of
from .receiver import Receiver
from .sender import RETRY_S, Sender

M = TypeVar("M")
T = TypeVar("T")

_LONGEST_POLL_S = 1e6
"""A bound of poll(2): its milliseconds are a 32-bit integer."""


def completed(call: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine whose waits block, and return its result."""
    try:
        call.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("a call that should block was suspended")


class Blocking(Endpoint):
    """An endpoint whose waits block the thread."""

    def _configure(self, socket: zmq.Socket[bytes]) -> None:
        super()._configure(socket)
        self._poll = select.poll()
        self._poll.register(int(socket.get(zmq.FD)), select.POLLIN)

    async def _until(
        self,
        attempt: Callable[[], T],
        timeout: Timeout,
        unsignalled: Callable[[], bool] | None = None,
    ) -> T:
        deadline = self._deadline(timeout)
        while True:
            # Asked before: what comes without a signal may come right after the attempt.
            soon = unsignalled is not None and unsignalled()
            try:
                return attempt()
            except zmq.Again:
                pass
            if not self._wait(deadline, RETRY_S if soon else _LONGEST_POLL_S):
                raise zmq.Again
            self._look()

    def _wait(self, deadline: float, at_most: float = _LONGEST_POLL_S) -> bool:
        """Wait until anything happens to the socket; False where the deadline has passed.

        Args:
            deadline: on the monotonic clock.
            at_most: seconds after which it returns though nothing has happened.
        """
        left = deadline - monotonic()
        if left <= 0:
            return False
        self._poll.poll(math.ceil(min(left, at_most) * 1000))
        return True

    def _look(self) -> None:
        """Look at the socket, so that its descriptor tells of what comes from now on."""
        self._events()

    async def _pause(self, seconds: float) -> None:
        time.sleep(seconds)


class BlockingSender(Blocking, Sender[M]):
    """Whatever sends and blocks, queues and broadcasts."""

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
        return completed(self._drain(timeout))


class SendingQueue(BlockingSender[M]):
    """The calls of a sending queue."""

    def put(self, msg: M, timeout: Timeout = DEFAULT) -> zmq.MessageTracker | None:
        """Send a message.

        The caller may change the message, and its tensors, as soon as this returns; with
        `copy=False`, as soon as the tracker that it returns is done.

        Args:
            msg: a message of the codec's group.
            timeout: seconds to wait while the queue is full; None waits for ever.

        Raises:
            EncodeError: the message does not fit its schema; nothing was sent.
            MessageTooLarge: it is larger than the queue's limit; nothing was sent.
            QueueFull: nothing could be sent in time.
            QueueClosed, WrongThread, WrongProcess: the queue cannot be used here.
        """
        if get_ident() != self._owner:
            self._refuse()
        frames = self._encode(msg)
        try:
            return self._transmit(frames)
        except zmq.ZMQError:
            pass  # It is full, or the process is exiting, as the next attempt finds out, too.
        return completed(self._put_frames(frames, timeout))

    def put_many(self, msgs: Iterable[M], timeout: Timeout = DEFAULT) -> None:
        """Send messages, as one batch message where the group has one.

        Args:
            msgs: messages of the codec's group; none of them may be a batch.
            timeout: seconds to wait, all in all, while the queue is full.

        Raises:
            EncodeError: a message does not fit its schema; nothing was sent.
            QueueFull: not all could be sent in time; its `sent` says how many were, which is 0
                for a group with a batch.
            MessageTooLarge, QueueClosed, WrongThread, WrongProcess: as for `put`.
        """
        encoded = self._encode_many(msgs)
        if len(encoded) == 1:  # Most often, a batch message.
            self._now_or_later(encoded[0], timeout)
        else:
            completed(self._put_each(encoded, timeout))

    def put_raw(
        self, raw: Raw, timeout: Timeout = DEFAULT
    ) -> zmq.MessageTracker | None:
        """Send an encoded message, such as one of `get_raw`.

        Args:
            raw: its frames, or its only frame.
            timeout: seconds to wait while the queue is full.

        Raises:
            MessageTooLarge, QueueFull, QueueClosed, WrongThread, WrongProcess: as for `put`.
        """
        self._check_owner()
        return self._now_or_later(
            raw if type(raw) is bytes else frames_of(raw), timeout
        )

    def _now_or_later(self, frames: Any, timeout: Timeout) -> zmq.MessageTracker | None:
        try:
            return self._transmit(frames)
        except zmq.ZMQError:
            pass  # As in `put`.
        return completed(self._put_frames(frames, timeout))


class ReceivingQueue(Blocking, Receiver[M]):
    """The calls of a receiving queue."""

    def get(self, timeout: Timeout = DEFAULT) -> M:
        """Receive a message.

        Args:
            timeout: seconds to wait for one; None waits for ever.

        Raises:
            DecodeError: what arrived is no valid message; it is taken off the queue and counted,
                and the next call gets the next one.
            QueueEmpty: nothing arrived in time.
            QueueClosed, WrongThread, WrongProcess: the queue cannot be used here.
        """
        if get_ident() != self._owner:
            self._refuse()
        if self._held:
            return self._take_held()
        if timeout is DEFAULT:
            timeout = self._timeout
        try:
            # Waiting for ever inside ZeroMQ is the fastest way to be woken by a message.
            head = self._recv() if timeout is None else self._recv(NOW)
        except zmq.ZMQError:
            pass  # As in `put`.
        else:
            return self._unpack(head)
        return completed(self._take(self._get_now, timeout))

    def get_many(self, max_messages: int, timeout: Timeout = DEFAULT) -> list[M]:
        """Receive what is there, at least one message; batches are opened.

        Args:
            max_messages: how many at most; what a batch has more is kept for the next call.
            timeout: seconds to wait for the first.

        Raises:
            DecodeError: the next one is no valid message; those before it were returned first.
            QueueEmpty, QueueClosed, WrongThread, WrongProcess: as for `get`.
        """
        return self._now_or_later(self._many(max_messages), timeout)

    def get_raw(self, timeout: Timeout = DEFAULT) -> list[Frame]:
        """Receive the frames of a message without decoding them.

        The head is bytes; payloads are ZeroMQ's frames, uncopied, which `put_raw` passes on without
        a copy, too.

        Raises:
            DecodeError: its frames together are larger than the limit.
            QueueEmpty, QueueClosed, WrongThread, WrongProcess: as for `get`.
            MsgenError: `get_many` holds messages back, which have been decoded.
        """
        return self._now_or_later(self._get_raw_now, timeout)

    def drain(self, timeout: float = 0.0) -> list[M]:
        """Receive all that is there, and what arrives within the timeout after it.

        Args:
            timeout: seconds without a message that end it.

        Raises:
            DecodeError: as for `get_many`.
            QueueClosed, WrongThread, WrongProcess: as for `get`.
        """
        return completed(self._drain(timeout))

    def _now_or_later(self, attempt: Callable[[], T], timeout: Timeout) -> T:
        self._check_owner()
        try:
            return attempt()
        except zmq.ZMQError:
            pass  # As in `put`.
        return completed(self._take(attempt, timeout))


class ZmqPushQueue(SendingQueue[M]):
    """The sending end of PUSH and PULL.

    With several pulling ends, messages are dealt out in turn. A message that had reached a pulling
    process which is killed is lost with it; what has not left this process goes to the next one
    that binds, where this end connects.
    """

    _socket_type = zmq.PUSH


class ZmqPullQueue(ReceivingQueue[M]):
    """The receiving end of PUSH and PULL; it takes from all pushing ends in turn."""

    _socket_type = zmq.PULL

"""Queues whose calls block: PUSH and PULL, PUB and SUB."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import get_ident
from typing import TYPE_CHECKING, Any, TypeVar

import zmq
from msgen.runtime.codec.codec import Codec
from msgen.runtime.errors import DecodeError, QueueEmpty, QueueFull, SubscribersMissing

from .endpoint import DEFAULT, Timeout, time_left
from .publishing import Publisher
from .receiver import DRAIN_CHUNK, NOW, Receiver, check_limit
from .sender import Frame, Raw, Sender, SendingOptions, frames_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

M = TypeVar("M")

_SUBSCRIPTIONS_EVERY = 256


class _Put(Sender[M]):
    """Sending, with calls that block."""

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
        except zmq.Again:
            pass
        except zmq.ContextTerminated:
            raise self._closed_by_exit() from None
        return self._transmit_later(frames, timeout)

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
        self._check_owner()
        encoded = self._encode_many(msgs)
        deadline = self._deadline(timeout)
        for sent, frames in enumerate(encoded):
            try:
                self._put_frames(frames, time_left(deadline))
            except QueueFull as error:
                error.sent = sent
                raise

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
        return self._put_frames(raw if type(raw) is bytes else frames_of(raw), timeout)

    def _put_frames(self, frames: Any, timeout: Timeout) -> zmq.MessageTracker | None:
        try:
            return self._transmit(frames)
        except zmq.Again:
            pass
        except zmq.ContextTerminated:
            raise self._closed_by_exit() from None
        return self._transmit_later(frames, timeout)

    def _transmit_later(
        self, frames: Any, timeout: Timeout
    ) -> zmq.MessageTracker | None:
        deadline = self._deadline(timeout)
        while True:
            self._before_waiting()
            self._check_let_in()
            # Asked before: a loan may come back at any moment, and without a signal.
            has_room = self._carrier.has_room(frames)
            try:
                return self._transmit(frames)
            except zmq.Again:
                pass
            except zmq.ContextTerminated:
                raise self._closed_by_exit() from None
            in_time = (
                self._wait(deadline)
                if has_room
                else self._carrier.wait_for_room(deadline)
            )
            if not in_time:
                raise self._full(frames, self._seconds(timeout))

    def _before_waiting(self) -> None:
        """Look at the socket, so that its descriptor tells of what comes now."""
        self._events()


class ZmqPushQueue(_Put[M]):
    """The sending end of PUSH and PULL.

    With several pulling ends, messages are dealt out in turn. A message that had reached a pulling
    process which is killed is lost with it; what has not left this process goes to the next one
    that binds, where this end connects.
    """

    _socket_type = zmq.PUSH


class ZmqPubQueue(_Put[M], Publisher[M]):
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
        self._before_waiting()
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

    def put(self, msg: M, timeout: Timeout = DEFAULT) -> zmq.MessageTracker | None:
        self._forget_the_gone()
        return super().put(msg, timeout)

    def _put_frames(self, frames: Any, timeout: Timeout) -> zmq.MessageTracker | None:
        self._forget_the_gone()
        return super()._put_frames(frames, timeout)

    def _forget_the_gone(self) -> None:
        """Read subscriptions now and then: unread ones would pile up."""
        if self._carrier.messages % _SUBSCRIPTIONS_EVERY == 0:
            self._check_owner()
            self._before_waiting()

    def _before_waiting(self) -> None:
        for message in self._upstream():
            self._subscribers += 1 if message[:1] == b"\1" else -1


class _Get(Receiver[M]):
    """Receiving, with calls that block."""

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
        if timeout is DEFAULT and self._timeout is None:
            try:
                head = self._recv()
            except zmq.ContextTerminated:
                raise self._closed_by_exit() from None
        else:
            head = self._receive(timeout)
        return self._unpack(head)

    def get_many(self, max_messages: int, timeout: Timeout = DEFAULT) -> list[M]:
        """Receive what is there, at least one message; batches are opened.

        Args:
            max_messages: how many at most; what a batch has more is kept for the next call.
            timeout: seconds to wait for the first.

        Raises:
            DecodeError: the next one is no valid message; those before it were returned first.
            QueueEmpty, QueueClosed, WrongThread, WrongProcess: as for `get`.
        """
        self._check_owner()
        check_limit(max_messages)
        while not self._held:
            self._hold(self._receive(timeout))
        self._hold_what_is_there(max_messages)
        return self._hand_out(max_messages)

    def get_raw(self, timeout: Timeout = DEFAULT) -> list[Frame]:
        """Receive the frames of a message without decoding them.

        The head is bytes; payloads are ZeroMQ's frames, uncopied, which `put_raw` passes on without
        a copy, too.

        Raises:
            DecodeError: its frames together are larger than the limit.
            QueueEmpty, QueueClosed, WrongThread, WrongProcess: as for `get`.
            MsgenError: `get_many` holds messages back, which have been decoded.
        """
        self._check_owner()
        deadline = self._deadline(timeout)
        while True:
            try:
                return self._receive_raw()
            except zmq.Again:
                pass
            except zmq.ContextTerminated:
                raise self._closed_by_exit() from None
            if not self._wait(deadline):
                raise self._nothing(self._seconds(timeout))

    def drain(self, timeout: float = 0.0) -> list[M]:
        """Receive all that is there, and what arrives within the timeout after it.

        Args:
            timeout: seconds without a message that end it.

        Raises:
            DecodeError: as for `get_many`.
            QueueClosed, WrongThread, WrongProcess: as for `get`.
        """
        msgs: list[M] = []
        try:
            while True:
                msgs += self.get_many(DRAIN_CHUNK, timeout)
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

    def _receive(self, timeout: Timeout) -> bytes:
        """Receive the head of a message."""
        recv: Callable[..., bytes] = self._recv
        try:
            deadline = self._deadline(timeout)
            if deadline is None:
                return recv()
            while True:
                try:
                    return recv(NOW)
                except zmq.Again:
                    pass
                if not self._wait(deadline):
                    raise self._nothing(self._seconds(timeout))
        except zmq.ContextTerminated:
            raise self._closed_by_exit() from None


class ZmqPullQueue(_Get[M]):
    """The receiving end of PUSH and PULL; it takes from all pushing ends in turn."""

    _socket_type = zmq.PULL


class ZmqSubQueue(_Get[M]):
    """The subscribing end of PUB and SUB: it gets every message put after it subscribed."""

    _socket_type = zmq.SUB

    def _configure(self, socket: zmq.Socket[bytes]) -> None:
        socket.subscribe(b"")

"""Every other rank's end of a broadcast; `broadcast` says how it works."""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Callable
from itertools import repeat
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import zmq
from msgen.runtime.codec.codec import Codec
from msgen.runtime.errors import BroadcastError, PublisherLost, QueueEmpty, StepGap
from msgen.runtime.queues.blocking import Blocking
from msgen.runtime.queues.endpoint import DEFAULT, HIGH_WATER_MARK, Options, Timeout
from msgen.runtime.queues.frames import NOW
from msgen.runtime.sockets.monitor import Monitor

from .steps import (
    STEP,
    SUBSCRIBE,
    Announcement,
    Progress,
    RawStep,
    StepDecoder,
    unpack_head,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

M = TypeVar("M")

_REPORT_AFTER_S = 0.02
"""Of waiting, after which a rank tells how far it is; a busy engine's steps come sooner."""
_TELLS_PER_QUEUE = 8
"""How often a rank tells within a high-water mark: counts lag by an eighth of what it may hold."""


class StepSubscriber(Blocking, StepDecoder[M]):
    """The end of every other rank: it connects, announces itself, and receives steps.

    Args:
        addr: where the publisher binds.
        codec: of the group whose messages are received.
        rank: this rank, from 1.
        world_size: how many ranks there are, rank 0 included.
        first_step: the first step that this rank must get; None takes whichever comes first.
        options: see `Endpoint`; `hwm` counts steps.
    """

    _socket_type = zmq.XSUB

    def __init__(
        self,
        addr: str,
        codec: Codec[M],
        rank: int,
        world_size: int,
        *,
        first_step: int | None = 0,
        **options: Unpack[Options],
    ) -> None:
        if not 0 < rank < world_size:
            raise ValueError(
                f"rank: expected 1 to {world_size - 1} of a world of {world_size}, got {rank}; "
                "rank 0 publishes"
            )
        self._monitor: Monitor | None = None
        super().__init__(addr, False, **options)
        self.codec = codec
        self.rank = rank
        self._next = first_step
        self._publisher: int | None = None
        self._broken: BroadcastError | None = None
        self._gone = False
        self._recv = self._raw.recv
        self._report_every = max(
            1, options.get("hwm", HIGH_WATER_MARK) // _TELLS_PER_QUEUE
        )
        self._reported = 0
        who = Announcement(
            rank, world_size, codec.group, codec.fingerprint, os.urandom(8)
        )
        self._raw.send(SUBSCRIBE + STEP, NOW)
        self._raw.send(SUBSCRIBE + who.pack(), NOW)

    def _configure(self, socket: zmq.Socket[bytes]) -> None:
        super()._configure(socket)
        # Subscriptions go upstream, and ZeroMQ drops those for which there is no room.
        socket.set(zmq.SNDHWM, HIGH_WATER_MARK)
        self._monitor = Monitor(socket, zmq.EVENT_DISCONNECTED)
        self._poll.register(self._monitor.descriptor, select.POLLIN)

    def _before_closing(self, deadline: float) -> None:
        if self._monitor is not None:
            self._monitor.close()

    def get(self, timeout: Timeout = DEFAULT) -> list[M]:
        """Receive the messages of the next step.

        Args:
            timeout: seconds to wait for it; None waits for ever.

        Raises:
            StepDecodeError: some of its messages are not valid; it has those that are. The next
                call gets the next step.
            QueueEmpty, PublisherLost, StepGap, ...: as for `get_raw`.
        """
        return self.decode(self.get_raw(timeout))

    def get_raw(self, timeout: Timeout = DEFAULT) -> RawStep:
        """Receive the next step without decoding its messages.

        Args:
            timeout: seconds to wait for it; None waits for ever.

        Raises:
            QueueEmpty: no step came in time; the publisher may be busy, or not there yet.
            PublisherLost: the publisher is gone, and all steps that came were taken.
            StepGap: a step is missing, or comes from another publisher.
            BroadcastError: what came is no step.
            QueueClosed, WrongThread, WrongProcess: the subscriber cannot be used here.

        After the broadcast's own errors this rank is out of step for good; they are raised again.
        """
        self._check_owner()
        if self._broken is not None:
            raise self._broken.with_traceback(None)
        try:
            return self._take_step(self._receive_head(timeout))
        except BroadcastError as error:
            self._broken = error
            raise
        except zmq.ContextTerminated:
            raise self._closed_by_exit() from None

    def _receive_head(self, timeout: Timeout) -> bytes:
        recv: Callable[[int], bytes] = self._recv
        deadline = self._deadline(timeout)
        report_at = 0.0
        while True:
            # What it had sent before it went comes first.
            try:
                return recv(NOW)
            except zmq.Again:
                self._gone = self._publisher_left() or self._gone
            if self._next and self._reported != self._next and not self._gone:
                # A rank that waits for long has said all; one that takes nothing says nothing. To
                # say it after every step would cost both ends more than the step.
                report_at = report_at or monotonic() + _REPORT_AFTER_S
                if not self._wait(min(report_at, deadline)):
                    # Sending looks at the socket, so what it has must be looked for again.
                    self._report()
                continue
            if self._gone:
                with contextlib.suppress(zmq.Again):
                    return recv(NOW)
                raise PublisherLost(
                    f"{self.addr}: the publisher is gone: its process ended, its connection "
                    "broke, or it sent more than max_message_bytes; this rank took "
                    f"{self._messages} steps"
                )
            if not self._wait(deadline):
                raise QueueEmpty(
                    f"{self.addr}: no step came within {self._seconds(timeout)} s; rank "
                    f"{self.rank} took {self._messages} so far"
                )

    def _publisher_left(self) -> bool:
        assert self._monitor is not None
        left = False
        while self._monitor.next():
            left = True
        return left

    def _take_step(self, head: bytes) -> RawStep:
        """Receive the frames that follow a head.

        Raises:
            StepGap: it is not the step that comes next.
            BroadcastError: it is no step.
        """
        publisher, number, counts = unpack_head(head)
        recv = self._recv
        total = sum(counts)
        messages: list[list[Any]]
        try:
            if total == len(counts):
                messages = [[frame] for frame in map(recv, repeat(NOW, total))]
            else:
                # The first frame of a message is copied, its payloads are not.
                messages = [
                    [recv(NOW), *map(recv, repeat(NOW, count - 1), repeat(False))]
                    for count in counts
                ]
            fits = not self._raw.get(zmq.RCVMORE)
        except zmq.Again:
            fits = False
        if not fits:
            raise BroadcastError(
                f"{self.addr}: the head of step {number} does not fit the frames that follow it"
            )
        self._check_order(publisher, number)
        self._next = number + 1
        self._messages += 1
        self._bytes += len(head) + sum(
            len(frame) for each in messages for frame in each
        )
        if self._next - self._reported >= self._report_every:
            self._report()
        return RawStep(number, messages)

    def _check_order(self, publisher: int, number: int) -> None:
        expected = number if self._next is None else self._next
        if self._publisher not in (None, publisher):
            raise StepGap(
                f"{self.addr}: after step {expected - 1} comes step {number} of another publisher; "
                "it was started anew, so start this rank anew, too",
                expected,
                number,
            )
        if number != expected:
            raise StepGap(
                f"{self.addr}: expected step {expected}, got step {number}: rank {self.rank} is "
                "out of step with the others",
                expected,
                number,
            )
        self._publisher = publisher

    def _report(self) -> None:
        """Tell the publisher how far this rank is; it names who is behind when a step stalls."""
        assert self._next is not None
        self._reported = self._next
        with contextlib.suppress(zmq.Again):
            self._raw.send(Progress(self.rank, self._next).pack(), NOW)

    def empty(self) -> bool:
        """Say whether `get` would have to wait."""
        self._check_owner()
        return not self._waiting()

    def _waiting(self) -> int:
        return int(bool(self._events() & zmq.POLLIN))

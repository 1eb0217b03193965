"""Broadcast: rank 0 gives every other rank the same messages in the same step.

One step is one multipart message, so a rank has all of it or nothing, and no collective is needed
to agree on how many messages there are. The frames of messages are passed on as they came. The
publisher is an XPUB socket that never drops: a rank that does not keep up makes it wait. Steps are
numbered, so that a rank knows when one is missing.

Nothing is sent until every rank has announced itself; a rank that goes is noticed by ZeroMQ taking
its subscription back.
"""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, Generic

import zmq

from .codec import Codec
from .endpoint import DEFAULT, HIGH_WATER_MARK, Endpoint, Options, Timeout
from .errors import (
    BroadcastError,
    PublisherLost,
    QueueEmpty,
    RankStalled,
    StepDecodeError,
    StepGap,
)
from .frames import DEFAULT_THRESHOLD
from .monitors import Monitor
from .receiving import NOW, M
from .roster import RankState, Roster
from .sending import Frame, Raw, Sender, frames_of
from .steps import (
    STEP,
    SUBSCRIBE,
    Announcement,
    Progress,
    RawStep,
    decode_step,
    pack_head,
    unpack_head,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack


class StepPublisher(Sender[M]):
    """Rank 0's end of a broadcast: it binds, and sends steps.

    Args:
        addr: where the ranks meet, such as `ipc_address("backend.steps", run)`.
        codec: of the group whose messages are sent.
        world_size: how many ranks there are, this one as rank 0 included.
        options: see `Endpoint`; `hwm` counts steps.
    """

    _socket_type = zmq.XPUB

    def __init__(
        self,
        addr: str,
        codec: Codec[M],
        world_size: int,
        *,
        threshold: int = DEFAULT_THRESHOLD,
        **options: Unpack[Options],
    ) -> None:
        if world_size < 1:
            raise ValueError(f"world_size: expected 1 or more, got {world_size}")
        super().__init__(addr, True, codec, threshold=threshold, **options)
        self._others = world_size - 1
        self._roster = Roster(codec.group, codec.fingerprint, world_size)
        self._id = int.from_bytes(os.urandom(8), "little")
        self._next = 0

    def _configure(self, socket: zmq.Socket[bytes]) -> None:
        super()._configure(socket)
        socket.set(zmq.XPUB_VERBOSER, 1)
        socket.set(zmq.XPUB_NODROP, 1)

    def wait_for_subscribers(
        self, n: int | None = None, timeout: Timeout = DEFAULT
    ) -> None:
        """Wait until ranks 1 to n have subscribed.

        Args:
            n: how many ranks; None for all, which `put` needs.
            timeout: seconds; None waits for ever.

        Raises:
            SubscribersMissing: not all have in time; its `ranks` are the missing ones.
            SchemaMismatch: a rank announced another fingerprint; its path names the rank.
            RankRefused: a rank announced another world size, or a rank that is taken.
            QueueClosed, WrongThread, WrongProcess: the publisher cannot be used here.
        """
        self._check_owner()
        wanted = self._others if n is None else n
        if not 0 <= wanted <= self._others:
            raise ValueError(f"n: expected 0 to {self._others} subscribers, got {n}")
        deadline = self._deadline(timeout)
        while True:
            self._look()
            self._roster.check()
            if self._roster.complete(wanted):
                return
            if not self._wait(deadline):
                raise self._roster.missing_error(wanted, self._seconds(timeout))

    def put(self, msgs: Iterable[M], timeout: Timeout = DEFAULT) -> RawStep:
        """Send messages as one step.

        Args:
            msgs: messages of the codec's group, possibly none.
            timeout: seconds to wait for ranks that do not keep up; None waits for ever.

        Returns:
            The step, as the other ranks get it. Large payloads in it are views of the messages.

        Raises:
            EncodeError: a message does not fit its schema; nothing was sent.
            SubscribersMissing, RankLost, RankStalled, ...: as for `put_raw`.
        """
        self._check_owner()
        return self.put_raw([self._encode(msg) for msg in msgs], timeout)

    def put_raw(self, messages: Iterable[Raw], timeout: Timeout = DEFAULT) -> RawStep:
        """Send encoded messages as one step, such as those of a pull queue's `get_raw`.

        Args:
            messages: the frames of each, or its only frame.
            timeout: seconds to wait for ranks that do not keep up; None waits for ever.

        Returns:
            The step, as the other ranks get it.

        Raises:
            SubscribersMissing: not every rank has subscribed yet; nothing was sent.
            RankLost: a rank is gone; nothing was sent, and nothing can be any more.
            RankStalled: a rank takes no steps; nothing was sent, to no rank, and it may be tried
                again.
            SchemaMismatch, RankRefused: as for `wait_for_subscribers`.
            MessageTooLarge: the step is larger than the limit; nothing was sent.
            QueueClosed, WrongThread, WrongProcess: the publisher cannot be used here.
        """
        self._check_owner()
        step = RawStep(self._next, [frames_of(raw) for raw in messages])
        counts = [len(frames) for frames in step.messages]
        frames: list[Frame] = [pack_head(self._id, step.number, counts)]
        for each in step.messages:
            frames += each
        self._look()
        self._roster.check_complete()
        try:
            self._transmit(frames)
        except zmq.Again:
            self._transmit_later(frames, timeout)
        self._next += 1
        return step

    def _transmit_later(self, frames: Sequence[Frame], timeout: Timeout) -> None:
        deadline = self._deadline(timeout)
        while True:
            self._look()
            self._roster.check()
            try:
                self._transmit(frames)
            except zmq.Again:
                pass
            else:
                return
            if not self._wait(deadline):
                told, ranks = self._roster.stalled_text(self._next)
                raise RankStalled(
                    f"{self.addr}: step {self._next} could not be sent within "
                    f"{self._seconds(timeout)} s: {told}",
                    ranks,
                )

    def decode(self, step: RawStep) -> list[M]:
        """Decode a step; see `StepSubscriber.decode`."""
        try:
            return decode_step(self.codec, step)
        except StepDecodeError as error:
            self._decode_errors += len(error.bad)
            raise

    def check(self) -> None:
        """Raise if a rank is gone or unfit; does not wait.

        Raises:
            RankLost, RankRefused, SchemaMismatch: as for `put_raw`.
            QueueClosed, WrongThread, WrongProcess: the publisher cannot be used here.
        """
        self._check_owner()
        self._look()
        self._roster.check()

    @property
    def ranks(self) -> list[RankState]:
        """The ranks that listen now, and what they have said of their progress."""
        self._check_owner()
        self._look()
        return self._roster.ranks

    def _look(self) -> None:
        while self._events() & zmq.POLLIN:
            self._roster.take(self._raw.recv(NOW))


class StepSubscriber(Endpoint, Generic[M]):
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
        self._recv = self._raw.recv
        self._tell_every = max(1, options.get("hwm", HIGH_WATER_MARK) // 8)
        self._told = 0
        who = Announcement(
            rank, world_size, codec.group, codec.fingerprint, os.urandom(8)
        )
        self._raw.send(SUBSCRIBE + STEP, NOW)
        self._raw.send(SUBSCRIBE + who.pack(), NOW)

    def _configure(self, socket: zmq.Socket[bytes]) -> None:
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
            raise self._broken
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
        while True:
            # What it had sent before it went comes first.
            gone = False
            try:
                return recv(NOW)
            except zmq.Again:
                gone = self._publisher_left()
            if self._next and self._told != self._next:
                # A rank that waits has said all; one that takes nothing says nothing. Sending looks
                # at the socket, so what it has must be looked for again.
                self._tell()
                continue
            if gone:
                try:
                    return recv(NOW)
                except zmq.Again:
                    raise PublisherLost(
                        f"{self.addr}: the publisher is gone: its process ended, its connection "
                        "broke, or it sent more than max_message_bytes; this rank took "
                        f"{self._messages} steps"
                    ) from None
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
        if self._next - self._told >= self._tell_every:
            self._tell()
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

    def _tell(self) -> None:
        """Tell the publisher how far this rank is; it names who is behind when a step stalls."""
        assert self._next is not None
        self._told = self._next
        with contextlib.suppress(zmq.Again):
            self._raw.send(Progress(self.rank, self._next).pack(), NOW)

    def decode(self, step: RawStep) -> list[M]:
        """Decode the messages of a step; every rank that does so gets the same.

        Raises:
            StepDecodeError: some are not valid; it has those that are, and counts the others.
        """
        try:
            return decode_step(self.codec, step)
        except StepDecodeError as error:
            self._decode_errors += len(error.bad)
            raise

    def empty(self) -> bool:
        """Say whether `get` would have to wait."""
        self._check_owner()
        return not self._waiting()

    def _waiting(self) -> int:
        return int(bool(self._events() & zmq.POLLIN))

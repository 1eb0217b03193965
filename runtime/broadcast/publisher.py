"""Rank 0's end of a broadcast; `broadcast` says how it works."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import zmq
from msgen.runtime.codec.codec import Codec
from msgen.runtime.codec.frames import DEFAULT_THRESHOLD
from msgen.runtime.errors import RankStalled
from msgen.runtime.queues.blocking import completed
from msgen.runtime.queues.endpoint import DEFAULT, Options, Timeout
from msgen.runtime.queues.frames import Frame, Raw, frames_of
from msgen.runtime.queues.pubsub import Publisher

from .roster import RankState, Roster
from .steps import RawStep, StepDecoder, pack_head

if TYPE_CHECKING:
    from typing_extensions import Unpack

M = TypeVar("M")


class StepPublisher(Publisher[M], StepDecoder[M]):
    """Rank 0's end of a broadcast: it binds, and sends steps.

    Args:
        addr: where the ranks meet, such as `ipc_address("backend.steps", run)`.
        codec: of the group whose messages are sent.
        world_size: how many ranks there are, this one as rank 0 included.
        options: see `Endpoint`; `hwm` counts steps.
    """

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
                ending = f" within {self._seconds(timeout)} s"
                raise self._roster.missing_error(wanted, ending)

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
            completed(self._put_frames(frames, timeout))
        self._next += 1
        return step

    def _transmit_or_tell(self, frames: Any) -> None:
        self._roster.check()
        self._transmit(frames)

    def _full(self, frames: Any, timeout: float | None) -> RankStalled:
        return self._roster.stalled_error(
            self._next,
            f"{self.addr}: step {self._next} could not be sent within {timeout} s: ",
        )

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

    def _take_upstream(self, message: bytes) -> None:
        self._roster.take(message)

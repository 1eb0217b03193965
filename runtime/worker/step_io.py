"""Where a worker's steps come from and where its replies go: rank 0, and every other rank.

Both look the same to the worker's loop. Rank 0 takes requests from a queue, passes each step on as
it came, before it decodes anything itself, and sends the replies. Every other rank follows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from msgen.runtime.broadcast.publisher import StepPublisher
from msgen.runtime.broadcast.subscriber import StepSubscriber
from msgen.runtime.errors import DecodeError
from msgen.runtime.queues.blocking import ZmqPushQueue

from .requests import RequestQueue
from .steps import Step, unpack_step


class StopRequest:
    """Tells rank 0 to stop, which looks at it before each step, and ten times a second while idle.

    Another thread or a signal's handler sets it.

    Attributes:
        asked: whether it is to stop once its work is done.
        at_once: whether it is to stop after the current step.
    """

    def __init__(self) -> None:
        self.asked = False
        self.at_once = False

    def drain(self) -> None:
        """Ask for a stop when nothing is left to do."""
        self.asked = True

    def stop(self) -> None:
        """Ask for a stop after the current step."""
        self.at_once = self.asked = True


class StepIO(Protocol):
    """What the worker's loop needs of its surroundings."""

    def next_step(self, busy: bool) -> Step:
        """Wait for the next step.

        Args:
            busy: whether the handler has work left, so that nothing is waited for.
        """

    def reply(self, replies: Sequence[Any]) -> None:
        """Send what the handler replied."""


@dataclass(eq=False)
class FirstRank:
    """Rank 0: it decides what a step is.

    Args:
        requests: where messages come from.
        replies: where replies go.
        publisher: gives the other ranks each step; None where there are none.
        stop: what ends it.
        limit: messages of a step, at most.
        refuse: called with a message's step and error where it cannot even be passed on.
    """

    requests: RequestQueue[Any]
    replies: ZmqPushQueue[Any]
    publisher: StepPublisher[Any] | None
    stop: StopRequest
    limit: int
    refuse: Callable[[int, DecodeError], None]
    _number: int = field(default=0, init=False)

    def next_step(self, busy: bool) -> Step:
        requests, stop, limit = self.requests, self.stop, self.limit
        taken = requests.take(limit, not (busy or stop.asked))
        while not (taken or busy or stop.asked or requests.pings or requests.refused):
            if self.publisher is not None:
                self.publisher.check()
            taken = requests.take(limit, True)
        for error in requests.refused:
            self.refuse(self._number, error)
        requests.refused.clear()
        pings = tuple(requests.pings)
        requests.pings.clear()
        last = stop.at_once or (stop.asked and not (taken or busy))
        step = Step(self._number, taken, busy, last, pings)
        self._number += 1
        if self.publisher is not None:
            self.publisher.put_raw([step.pack_head(), *step.messages])
        return step

    def reply(self, replies: Sequence[Any]) -> None:
        if len(replies) == 1:
            self.replies.put(replies[0])
        elif replies:
            self.replies.put_many(replies)


@dataclass(eq=False)
class OtherRank:
    """Any other rank: it follows.

    Args:
        subscriber: its end of the broadcast.
    """

    subscriber: StepSubscriber[Any]

    def next_step(self, busy: bool) -> Step:
        return unpack_step(self.subscriber.get_raw())

    def reply(self, replies: Sequence[Any]) -> None:
        pass

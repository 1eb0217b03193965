"""Where a worker's steps come from and where its replies go: rank 0, and every other rank.

Both look the same to the worker's loop. Rank 0 takes requests from a queue, passes each step on as
it came, before it decodes anything itself, and sends the replies. Every other rank follows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


class FirstRank:
    """Rank 0: it decides what a step is.

    Args:
        requests: where messages come from.
        replies: where replies go.
        publisher: gives the other ranks each step; None where there are none.
        stop: what ends it.
        limit: messages of a step, at most.
        refuse: is told of a message that cannot even be passed on.
    """

    def __init__(
        self,
        requests: RequestQueue[Any],
        replies: ZmqPushQueue[Any],
        publisher: StepPublisher[Any] | None,
        stop: StopRequest,
        limit: int,
        refuse: Callable[[int, DecodeError], None],
    ) -> None:
        self._requests = requests
        self._replies = replies
        self._publisher = publisher
        self._stop = stop
        self._limit = limit
        self._refuse = refuse
        self._number = 0

    def next_step(self, busy: bool) -> Step:
        requests, stop, limit = self._requests, self._stop, self._limit
        taken = requests.take(limit, not (busy or stop.asked))
        while not (taken or busy or stop.asked or requests.pings or requests.refused):
            if self._publisher is not None:
                self._publisher.check()
            taken = requests.take(limit, True)
        for error in requests.refused:
            self._refuse(self._number, error)
        requests.refused.clear()
        pings = tuple(requests.pings)
        requests.pings.clear()
        last = stop.at_once or (stop.asked and not (taken or busy))
        step = Step(self._number, taken, busy, last, pings)
        self._number += 1
        if self._publisher is not None:
            self._publisher.put_raw([step.pack_head(), *step.messages])
        return step

    def reply(self, replies: Sequence[Any]) -> None:
        if len(replies) == 1:
            self._replies.put(replies[0])
        elif replies:
            self._replies.put_many(replies)


class OtherRank:
    """Any other rank: it follows.

    Args:
        subscriber: its end of the broadcast.
    """

    def __init__(self, subscriber: StepSubscriber[Any]) -> None:
        self._subscriber = subscriber

    def next_step(self, busy: bool) -> Step:
        return unpack_step(self._subscriber.get_raw())

    def reply(self, replies: Sequence[Any]) -> None:
        pass

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
from .stop_request import StopRequest


class WorkerEnd(Protocol):
    """What the worker's loop needs of its surroundings."""

    def next_step(self, busy: bool) -> Step:
        """Wait for the next step.

        Args:
            busy: whether the handler has work left, so that nothing is waited for.
        """

    def reply(self, replies: Sequence[Any]) -> None:
        """Send what the handler replied."""


class Others(Protocol):
    """How rank 0 reaches the other ranks."""

    def send(self, step: Step) -> None:
        """Give them a step."""

    def look(self) -> None:
        """Raise if one of them is gone."""


class NoOthers:
    """Rank 0 is alone."""

    def send(self, step: Step) -> None:
        pass

    def look(self) -> None:
        pass


class Broadcast:
    """The other ranks get each step by broadcast.

    Args:
        publisher: its end.
    """

    def __init__(self, publisher: StepPublisher[Any]) -> None:
        self._publisher = publisher

    def send(self, step: Step) -> None:
        self._publisher.put_raw([step.pack_word(), *step.messages])

    def look(self) -> None:
        self._publisher.check()


class FirstRank:
    """Rank 0: it decides what a step is.

    Args:
        requests: where messages come from.
        replies: where replies go.
        others: the other ranks.
        stop: what ends it.
        limit: messages of a step, at most.
        refuse: is told of a message that cannot even be passed on.
    """

    def __init__(
        self,
        requests: RequestQueue[Any],
        replies: ZmqPushQueue[Any],
        others: Others,
        stop: StopRequest,
        limit: int,
        refuse: Callable[[int, DecodeError], None],
    ) -> None:
        self._requests = requests
        self._replies = replies
        self._others = others
        self._stop = stop
        self._limit = limit
        self._refuse = refuse
        self._number = 0

    def next_step(self, busy: bool) -> Step:
        requests, stop, limit = self._requests, self._stop, self._limit
        taken = requests.take(limit, not (busy or stop.asked))
        while not (taken or busy or stop.asked or requests.pings or requests.refused):
            self._others.look()
            taken = requests.take(limit, True)
        if requests.refused:
            self._refuse_all()
        last = stop.at_once or (stop.asked and not (taken or busy))
        step = Step(self._number, taken, busy, last, self._pings())
        self._number += 1
        self._others.send(step)
        return step

    def _pings(self) -> Sequence[bytes]:
        pings = self._requests.pings
        if not pings:
            return ()
        self._requests.pings = []
        return pings

    def _refuse_all(self) -> None:
        for error in self._requests.refused:
            self._refuse(self._number, error)
        self._requests.refused.clear()

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

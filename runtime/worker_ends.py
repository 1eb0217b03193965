"""Where a worker's steps come from and where its replies go: rank 0, and every other rank.

Both look the same to the worker's loop. Rank 0 takes requests from a queue, passes each step on as
it came, before it decodes anything itself, and sends the replies. Every other rank follows.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from .blocking_queues import ZmqPullQueue, ZmqPushQueue
from .errors import DecodeError
from .publisher import StepPublisher
from .sending import Frame
from .stop_request import StopRequest
from .subscriber import StepSubscriber
from .worker_steps import PING, Step, ping_token, unpack_step


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

    @property
    def descriptors(self) -> Sequence[int]:
        """What to wait on for news of them, after a look."""


class NoOthers:
    """Rank 0 is alone."""

    descriptors: Sequence[int] = ()

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
        self.descriptors: Sequence[int] = (publisher.fileno(),)

    def send(self, step: Step) -> None:
        self._publisher.put_raw([step.pack_word(), *step.messages])

    def look(self) -> None:
        self._publisher.check()


def _is_request(taken: Any) -> bool:
    """Say whether what was taken off the queue is neither a ping nor an error."""
    return type(taken) is list and not taken[0].startswith(PING)


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
        requests: ZmqPullQueue[Any],
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
        self._poll = select.poll()
        for descriptor in (
            requests.fileno(),
            stop.descriptor,
            *others.descriptors,
        ):
            self._poll.register(descriptor, select.POLLIN)

    def next_step(self, busy: bool) -> Step:
        take, limit, stop = self._requests.take_raw, self._limit, self._stop
        taken: Any = take(limit)
        while not (taken or busy or stop.asked):
            # Each wait follows a look at all that is waited for.
            self._others.look()
            self._poll.poll()
            taken = take(limit)
        pings: Sequence[bytes] = ()
        if not all(map(_is_request, taken)):
            taken, pings = self._sort_out(taken)
        last = stop.at_once or (stop.asked and not (taken or busy))
        step = Step(self._number, taken, busy, last, pings)
        self._number += 1
        self._others.send(step)
        return step

    def _sort_out(
        self, taken: Sequence[Sequence[Frame] | DecodeError]
    ) -> tuple[list[Sequence[Frame]], list[bytes]]:
        """Return what of it are requests, and the tokens of pings."""
        requests: list[Sequence[Frame]] = []
        pings: list[bytes] = []
        for each in taken:
            if isinstance(each, DecodeError):
                self._refuse(self._number, each)
            elif _is_request(each):
                requests.append(each)
            else:
                pings.append(ping_token(each))
        return requests, pings

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

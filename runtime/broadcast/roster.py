"""The roster: which ranks listen to a publisher, and what is wrong with those that do not."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from time import monotonic

from msgen.runtime.errors import (
    MsgenError,
    RankLost,
    RankRefused,
    RankStalled,
    SchemaMismatch,
    SubscribersMissing,
)

from .steps import (
    STEP,
    SUBSCRIBE,
    UNSUBSCRIBE,
    Announcement,
    unpack_announcement,
    unpack_progress,
)


@dataclass
class RankState:
    """What is known of a rank that listens.

    Attributes:
        rank: which one.
        taken: steps that it has taken, as far as it has said.
        last_message: when its last message came, on the monotonic clock.
    """

    rank: int
    taken: int
    last_message: float


class Roster:
    """Keeps the ranks of one broadcast, from what comes upstream.

    Args:
        group: of the publisher's codec.
        fingerprint: of that group.
        world_size: how many ranks there are, the publisher as rank 0 included.
    """

    def __init__(self, group: str, fingerprint: str, world_size: int) -> None:
        self._group = group
        self._fingerprint = fingerprint
        self._world_size = world_size
        self._listeners = 0
        self._connections: Counter[bytes] = Counter()
        self._ranks: dict[bytes, RankState] = {}
        self._refused: dict[bytes, MsgenError] = {}
        self._gone: dict[int, float] = {}
        self._lost: RankLost | None = None
        self._complete = False

    @property
    def ranks(self) -> list[RankState]:
        """The ranks that listen, in order."""
        return sorted(self._ranks.values(), key=lambda state: state.rank)

    def take(self, message: bytes) -> None:
        """Take in one message from upstream; whatever else comes there is ignored."""
        kind, topic = message[:1], message[1:]
        if kind not in (SUBSCRIBE, UNSUBSCRIBE):
            self._note_progress(message)
        elif topic == STEP:
            self._listeners += 1 if kind == SUBSCRIBE else -1
        elif kind == SUBSCRIBE:
            announcement = unpack_announcement(topic)
            if announcement is None:
                return
            self._connections[topic] += 1
            # A rank that connects again may announce itself before the end of its first connection is known.
            if self._connections[topic] == 1:
                self._register(topic, announcement)
        elif self._connections[topic] > 0:
            self._connections[topic] -= 1
            if not self._connections[topic]:
                del self._connections[topic]
                self._remove(topic)

    def _register(self, topic: bytes, said: Announcement) -> None:
        error = self._objection(said)
        if error is not None:
            self._refused[topic] = error
            return
        self._ranks[topic] = RankState(said.rank, 0, monotonic())
        self._gone.pop(said.rank, None)

    def _objection(self, said: Announcement) -> MsgenError | None:
        rank = said.rank
        if said.fingerprint != self._fingerprint:
            return SchemaMismatch(
                f"rank {rank}",
                f"the rank announced group '{said.group}' with fingerprint {said.fingerprint}, "
                f"this publisher sends group '{self._group}' with {self._fingerprint}; build both "
                "from one schema",
                self._fingerprint,
                said.fingerprint,
            )
        if said.world_size != self._world_size:
            return RankRefused(
                f"rank {rank} announced a world size of {said.world_size}, this publisher has "
                f"{self._world_size}; start all ranks with the same",
                rank,
            )
        if not 0 < rank < self._world_size:
            return RankRefused(
                f"rank {rank} announced itself; subscribers are ranks 1 to "
                f"{self._world_size - 1}",
                rank,
            )
        if any(state.rank == rank for state in self._ranks.values()):
            return RankRefused(
                f"rank {rank} was announced by two processes; give each its own rank",
                rank,
            )
        return None

    def _remove(self, topic: bytes) -> None:
        self._refused.pop(topic, None)
        state = self._ranks.pop(topic, None)
        if state is None:
            return
        self._gone[state.rank] = monotonic()
        if self._complete and self._lost is None:
            self._lost = RankLost(
                f"rank {state.rank} is gone: its process ended, or its connection broke; it had "
                f"said that it took {state.taken} steps",
                state.rank,
            )

    def _note_progress(self, message: bytes) -> None:
        progress = unpack_progress(message)
        if progress is None:
            return
        for state in self._ranks.values():
            if state.rank == progress.rank:
                state.taken = max(state.taken, progress.taken)
                state.last_message = monotonic()

    def check(self) -> None:
        """Raise what is wrong, if anything is.

        Raises:
            SchemaMismatch, RankRefused: a rank announced what does not fit.
            RankLost: a rank was there when all were, and is gone.
        """
        for error in self._refused.values():
            raise error.with_traceback(None)
        if self._lost is not None:
            raise self._lost.with_traceback(None)

    def check_complete(self) -> None:
        """Raise unless all ranks have been there at once, and still are.

        Raises:
            SubscribersMissing: they have not.
            SchemaMismatch, RankRefused, RankLost: as for `check`.
        """
        self.check()
        everyone = self._world_size - 1
        if not self.complete(everyone):
            raise self.missing_error(everyone, "; call wait_for_subscribers first")

    def complete(self, n: int) -> bool:
        """Say whether ranks 1 to n listen, or have done so before."""
        if not self._complete and not self.missing(n):
            # An announcement may overtake the subscription to steps.
            everyone = n == self._world_size - 1
            self._complete = everyone and self._listeners >= n
            return self._listeners >= n
        return self._complete

    def missing(self, n: int) -> tuple[int, ...]:
        """Return those of ranks 1 to n that do not listen."""
        here = {state.rank for state in self._ranks.values()}
        return tuple(rank for rank in range(1, n + 1) if rank not in here)

    def missing_error(self, n: int, ending: str) -> SubscribersMissing:
        """Return the error that not all of ranks 1 to n listen, with a text that ends so."""
        missing = self.missing(n)
        if not missing:
            text = "not every rank that announced itself has subscribed to steps yet"
        else:
            names = ", ".join(map(str, missing))
            verb = "rank {} has" if len(missing) == 1 else "ranks {} have"
            text = f"{verb.format(names)} not subscribed, of ranks 1 to {n}"
        left = ", ".join(str(rank) for rank in missing if rank in self._gone)
        if left:
            text += f" ({left} had subscribed, and left before all were there)"
        return SubscribersMissing(text + ending, missing)

    def stalled_error(self, number: int, beginning: str) -> RankStalled:
        """Return the error that ranks take no steps: who is furthest behind, and since when."""
        now = monotonic()
        least = min((state.taken for state in self.ranks), default=0)
        last = [state for state in self.ranks if state.taken == least]
        details = ", ".join(
            f"rank {state.rank} is connected, has taken at least {state.taken} of {number} steps "
            f"and was last heard of {now - state.last_message:.1f} s ago"
            for state in last
        )
        return RankStalled(beginning + details, tuple(state.rank for state in last))

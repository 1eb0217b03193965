"""How many messages a second go through a worker that does nothing, and what a step costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

from msgen.runtime.queues import ZmqPullQueue

from ..output import Report, Row
from ..queues.cases import BATCH, SMALL, make_cases
from ..queues.ends import BATCHES, MSGEN, Pusher
from ..queues.processes import Worker, close_parts
from ..queues.rates import enough, transfer
from ..timing import in_turns, ratio
from .pools import RANKS, Pools, ranks_text, replies_of

_WARM_UP = 10 * BATCH
_LEAST = 200 * BATCH
_MOST = 4096
"""Messages of one call: more than are there, so that the receiver takes all that are."""
BATCHED = f"batches of {BATCH}"
SINGLE = "one by one"
STEPS_OF_ONE = "steps of 1"


_COLUMNS = {
    "way": "{way}",
    "requests": "{sent}",
    "messages/s": "{messages_per_s:,.0f}",
    "x direct": "{ratio:.2f}",
    "a step has": "{messages_per_step:.1f}",
    "a step takes us": "{step_us:.1f}",
}


class _Sample(NamedTuple):
    rate: float
    messages_per_step: float


class Receiver:
    """A worker's part: it receives the replies of a pool, however they are batched."""

    def __init__(self, addr: str) -> None:
        self._queue: ZmqPullQueue[Any] = ZmqPullQueue(
            addr, False, make_cases()[SMALL].codec
        )

    def receive(self, messages: int) -> float:
        """Receive so many messages; return how many a second, from the first on."""
        expected = make_cases()[SMALL].message
        first = self._queue.get_many(BATCH)
        if any(each != expected for each in first):
            raise ValueError(f"expected {expected!r}, got {first!r}")
        start, got = perf_counter(), len(first)
        while got < messages:
            got += len(self._queue.get_many(_MOST))
        return (got - len(first)) / (perf_counter() - start)

    def close(self) -> None:
        self._queue.stop()


def measure_rates(
    report: Report,
    players: Sequence[Worker],
    pools: Pools,
    folder: Path,
    slice_s: float,
) -> None:
    """Measure all ways in turns, through the same two processes at the ends.

    Args:
        players: the sender and the receiver.
        slice_s: seconds of one measurement.
    """
    direct = 0, BATCHED
    keys = [direct]
    keys += [
        (ranks, sent) for sent in (BATCHED, SINGLE, STEPS_OF_ONE) for ranks in RANKS
    ]

    def measure(key: tuple[int, str], messages: int) -> _Sample:
        if key == direct:
            rate = transfer(players, folder, SMALL, BATCHES, messages).rate
            return _Sample(rate, BATCH)
        return _run(players, pools, folder, *key, messages)

    counts = {key: enough(measure(key, _LEAST).rate, slice_s, _LEAST) for key in keys}
    samples = in_turns(keys, report.rounds, lambda key: measure(key, counts[key]))
    base = [sample.rate for sample in samples[direct]]
    rows = []
    for key in keys:
        ranks, sent = key
        rates, messages_per_step = zip(*samples[key])
        rate, per_step = median(rates), median(messages_per_step)
        way = ranks_text(ranks) if ranks else "put_many and get_many"
        row: Row = {"way": way, "sent": sent, "ratio": ratio(rates, base)}
        row |= {"messages_per_s": rate, "messages_per_step": per_step}
        rows.append(row | {"step_us": per_step / rate * 1e6})
        if key == (1, BATCHED):
            title = f"{way}, {sent}: times the rate of put_many and get_many"
            report.target(title, row["ratio"], least=0.5)
    report.table(
        "rates",
        "rates: sender, worker and receiver are processes of their own; 11 bytes a message",
        _COLUMNS,
        rows,
    )


def _run(
    players: Sequence[Worker],
    pools: Pools,
    folder: Path,
    ranks: int,
    sent: str,
    messages: int,
) -> _Sample:
    sender, receiver = players
    limit = 1 if sent == STEPS_OF_ONE else BATCH
    pool = pools[ranks, limit]
    receiver.open(Receiver, replies_of(folder, ranks, limit))
    sender.open(Pusher, BATCHES if sent == BATCHED else MSGEN, SMALL, pool.addr)
    receiver.begin("receive", _WARM_UP)
    sender.ask("send", _WARM_UP)
    receiver.result()
    steps = pool.stats[0].steps
    receiver.begin("receive", messages)
    sender.ask("send", messages)
    rate = receiver.result()
    taken = pool.stats[0].steps - steps
    close_parts(players)
    return _Sample(rate, messages / max(1, taken))

"""How many messages a second go through a worker that does nothing, and what a step costs."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

from msgen.runtime.launch import WorkerPool
from queue_cases import BATCH, SMALL
from queue_ends import BATCHES, Puller, Pusher, fresh_address
from queue_workers import Worker, close_parts
from timing import ratio
from worker_latency import ranks_text
from worker_pools import RANKS, Receiver, Sender, replies_of

_WARM_UP = 10 * BATCH
_LEAST = 200 * BATCH
DIRECT = "put_many and get_many"
BATCHED = f"batches of {BATCH}"
SINGLE = "one by one"
STEPS_OF_ONE = "steps of 1"


@dataclass
class RateRow:
    """One way's figures.

    Attributes:
        sent: how the requests came, and went into steps.
        ratio: the rate divided by that of put_many and get_many without a worker.
        messages_per_step: that rank 0 took, on the average.
        step_us: time for each step of rank 0.
    """

    way: str
    sent: str
    messages_per_s: float
    ratio: float
    messages_per_step: float
    step_us: float


class _Sample(NamedTuple):
    rate: float
    messages_per_step: float


def measure_rates(
    players: Sequence[Worker],
    pools: Mapping[tuple[int, int], WorkerPool],
    folder: Path,
    rounds: int,
    slice_s: float,
) -> list[RateRow]:
    """Measure all ways in turns, through the same two processes at the ends.

    Args:
        players: the sender and the receiver.
        slice_s: seconds of one measurement.
    """
    keys: list[tuple[int, str]] = [(0, BATCHED)]
    keys += [
        (ranks, sent) for sent in (BATCHED, SINGLE, STEPS_OF_ONE) for ranks in RANKS
    ]
    counts = {}
    for key in keys:
        rate = _run(players, pools, folder, key, _LEAST).rate
        counts[key] = max(_LEAST, int(rate * slice_s) // BATCH * BATCH)
    samples: dict[tuple[int, str], list[_Sample]] = {key: [] for key in keys}
    order = list(keys)
    shuffle = random.Random(0).shuffle
    for _ in range(rounds):
        shuffle(order)
        for key in order:
            samples[key].append(_run(players, pools, folder, key, counts[key]))
    base = [sample.rate for sample in samples[keys[0]]]
    rows = []
    for key in keys:
        rates = [sample.rate for sample in samples[key]]
        per_step = median(sample.messages_per_step for sample in samples[key])
        way = ranks_text(key[0]) if key[0] else DIRECT
        rows.append(
            RateRow(
                way,
                key[1],
                median(rates),
                ratio(rates, base),
                per_step,
                per_step / median(rates) * 1e6,
            )
        )
    return rows


def _run(
    players: Sequence[Worker],
    pools: Mapping[tuple[int, int], WorkerPool],
    folder: Path,
    key: tuple[int, str],
    messages: int,
) -> _Sample:
    ranks, sent = key
    sender, receiver = players
    if not ranks:
        return _run_direct(sender, receiver, fresh_address(folder), messages)
    limit = 1 if sent == STEPS_OF_ONE else BATCH
    pool = pools[ranks, limit]
    receiver.open(Receiver, replies_of(folder, ranks, limit))
    sender.open(Sender, sent == BATCHED, pool.addr)
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


def _run_direct(sender: Worker, receiver: Worker, addr: str, messages: int) -> _Sample:
    receiver.open(Puller, BATCHES, SMALL, addr)
    sender.open(Pusher, BATCHES, SMALL, addr)
    receiver.begin("check", _WARM_UP)
    sender.ask("send", _WARM_UP)
    receiver.result()
    receiver.begin("receive", messages)
    sender.ask("send", messages)
    rate, _ = receiver.result()
    close_parts((sender, receiver))
    return _Sample(rate, BATCH)


def print_rates(rows: Sequence[RateRow]) -> None:
    print(
        "\nrates: sender, worker and receiver are processes of their own; 11 bytes a message"
    )
    print(
        f"  {'way':<24}{'sent':<16}{'messages/s':>12}{'us':>8}{'x direct':>10}"
        f"{'a step has':>12}{'a step takes us':>17}"
    )
    for row in rows:
        print(
            f"  {row.way:<24}{row.sent:<16}{row.messages_per_s:>12,.0f}"
            f"{1e6 / row.messages_per_s:>8.2f}{row.ratio:>10.2f}"
            f"{row.messages_per_step:>12.1f}{row.step_us:>17.1f}"
        )

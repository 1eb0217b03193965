"""How many steps a second rank 0 gives to all other ranks."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from queue_ends import MSGEN, fresh_address
from queue_ranks import Rank
from queue_workers import Worker, WorkerError, close_parts
from timing import ratio

GLOO = "gloo count + PUB each"
WORLD_SIZES = (3, 5)
MESSAGES = (0, 4, 64)

_WARM_UP = 30
_MOST_STEPS = 20_000

_Key = tuple[int, str, int]
"""World size, way, messages per step."""


@dataclass
class StepRow:
    """One way's figures; the ratio is its rate divided by that of the way with gloo."""

    world_size: int
    messages: int
    way: str
    steps_per_s: float
    ratio: float
    least_ratio: float
    greatest_ratio: float


def measure_steps(
    ranks: Sequence[Worker], folder: Path, rounds: int, slice_s: float
) -> list[StepRow]:
    """Measure all cases in turns, each time through fresh sockets of the same processes.

    Args:
        ranks: as many as the largest world has.
        slice_s: seconds of one measurement.
    """
    for index, rank in enumerate(ranks):
        rank.begin_open(Rank, index, WORLD_SIZES, f"{folder}/ranks")
    for rank in ranks:
        rank.result()
    pairs = [(size, way) for size in WORLD_SIZES for way in (GLOO, MSGEN)]
    steps: dict[_Key, int] = {}
    rates: dict[_Key, list[float]] = {}
    for size, way in pairs:
        for messages, rate in _visit(ranks, folder, size, way, MESSAGES, steps).items():
            steps[size, way, messages] = min(
                _MOST_STEPS, max(_WARM_UP, int(rate * slice_s))
            )
            rates[size, way, messages] = []
    shuffle = random.Random(0).shuffle
    counts = list(MESSAGES)
    for _ in range(rounds):
        shuffle(pairs)
        for size, way in pairs:
            shuffle(counts)
            for messages, rate in _visit(
                ranks, folder, size, way, counts, steps
            ).items():
                rates[size, way, messages].append(rate)
    close_parts(ranks)
    return [
        _row(
            size, messages, way, rates[size, way, messages], rates[size, GLOO, messages]
        )
        for size in WORLD_SIZES
        for messages in MESSAGES
        for way in (GLOO, MSGEN)
    ]


def _row(
    size: int, messages: int, way: str, rates: list[float], base: list[float]
) -> StepRow:
    each = [one / other for one, other in zip(rates, base)]
    return StepRow(
        size, messages, way, median(rates), ratio(rates, base), min(each), max(each)
    )


def _visit(
    ranks: Sequence[Worker],
    folder: Path,
    size: int,
    way: str,
    counts: Sequence[int],
    steps: dict[_Key, int],
) -> dict[int, float]:
    """Set a broadcast up and measure it; returns steps per second by messages per step."""
    first, *others = ranks[:size]
    addr = fresh_address(folder)
    first.ask("bind", way, size, addr)
    for rank in others:
        rank.ask("connect", way, size, addr)
    first.ask("wait_for_subscribers", len(others))
    rates = {}
    for messages in counts:
        _run(first, others, _WARM_UP, messages)
        rates[messages] = _run(
            first, others, steps.get((size, way, messages), _WARM_UP), messages
        )
    # The first to leave is rank 0: it would take a rank that leaves before it for lost.
    for rank in (first, *others):
        rank.ask("leave")
    return rates


def _run(first: Worker, others: Sequence[Worker], steps: int, messages: int) -> float:
    """Return the steps per second, until the last rank has taken the last step."""
    for rank in others:
        rank.begin("run", steps, messages)
    start, sent = first.ask("run", steps, messages)
    end = 0.0
    for rank in others:
        ended, passed = rank.result()
        if passed != sent:
            raise WorkerError(f"{rank.name}: got {passed} of {sent} messages")
        end = max(end, ended)
    rate: float = steps / (end - start)
    return rate


def print_steps(rows: Sequence[StepRow]) -> None:
    print(
        "\nbroadcast of steps: rank 0 passes encoded messages on, all other ranks decode them; "
        "until the last of them has"
    )
    print(
        f"  {'ranks':<9}{'messages/step':<15}{'way':<24}{'steps/s':>11}{'us':>9}{'x gloo':>9}"
        "  (least to greatest)"
    )
    for row in rows:
        first = row.way == GLOO
        print(
            f"  {f'1 + {row.world_size - 1}' if first else '':<9}"
            f"{row.messages if first else '':<15}{row.way:<24}"
            f"{row.steps_per_s:>11,.0f}{1e6 / row.steps_per_s:>9.1f}{row.ratio:>9.2f}"
            f"  ({row.least_ratio:.2f} to {row.greatest_ratio:.2f})"
        )

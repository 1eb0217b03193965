"""How many steps a second rank 0 gives to all other ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median

from ..output import Report
from ..timing import in_turns, ratios
from .ends import MSGEN, fresh_address
from .processes import Worker, WorkerError, close_parts
from .ranks import Rank

GLOO = "gloo count + PUB each"
WORLD_SIZES = (3, 5)
MESSAGES = (0, 4, 64)

_WARM_UP = 30
_MOST_STEPS = 20_000


@dataclass
class StepRow:
    """One way's figures; the ratio is its rate divided by that of the way with gloo."""

    others: int
    messages: int
    way: str
    steps_per_s: float
    us: float
    ratio: float
    least_ratio: float
    greatest_ratio: float


def measure_steps(
    report: Report, ranks: Sequence[Worker], folder: Path, slice_s: float
) -> None:
    """Measure all cases in turns, each time through fresh sockets of the same processes.

    Args:
        ranks: as many as the largest world has.
        slice_s: seconds of one measurement.
    """
    for index, rank in enumerate(ranks):
        rank.begin_open(Rank, index, WORLD_SIZES, f"{folder}/ranks")
    for rank in ranks:
        rank.result()
    worlds = [(size, way) for size in WORLD_SIZES for way in (GLOO, MSGEN)]
    counts = {}
    for world in worlds:
        few = dict.fromkeys(MESSAGES, _WARM_UP)
        rates = _visit(ranks, folder, *world, few)
        counts[world] = {
            messages: min(_MOST_STEPS, max(_WARM_UP, int(rate * slice_s)))
            for messages, rate in rates.items()
        }
    samples = in_turns(
        worlds,
        report.rounds,
        lambda world: _visit(ranks, folder, *world, counts[world]),
    )
    close_parts(ranks)
    rows = []
    for size, messages, way in product(WORLD_SIZES, MESSAGES, (GLOO, MSGEN)):
        mine = [rates[messages] for rates in samples[size, way]]
        base = [rates[messages] for rates in samples[size, GLOO]]
        each, rate = ratios(mine, base), median(mine)
        others = size - 1
        rows.append(
            StepRow(
                others,
                messages,
                way,
                rate,
                1e6 / rate,
                median(each),
                min(each),
                max(each),
            )
        )
        if way == MSGEN and messages == 4:
            title = f"step of 4 messages to {others} ranks: times gloo's rate"
            report.target(title, rows[-1].ratio, least=10.0)
    report.table(
        "steps",
        "broadcast of steps: rank 0 passes encoded messages on, all other ranks decode them; "
        "until the last of them has",
        rows,
        ("ranks", "1 + {0.others}"),
        ("messages/step", "{0.messages}"),
        ("way", "{0.way}"),
        ("steps/s", "{0.steps_per_s:,.0f}"),
        ("us", "{0.us:.1f}"),
        ("x gloo", "{0.ratio:.2f}"),
        ("from", "{0.least_ratio:.2f}"),
        ("to", "{0.greatest_ratio:.2f}"),
    )


def _visit(
    ranks: Sequence[Worker],
    folder: Path,
    size: int,
    way: str,
    counts: Mapping[int, int],
) -> dict[int, float]:
    """Set a broadcast up and measure it.

    Args:
        counts: how many steps to make, by messages per step.

    Returns:
        Steps per second, by messages per step.
    """
    first, *others = ranks[:size]
    addr = fresh_address(folder)
    first.ask("bind", way, size, addr)
    for rank in others:
        rank.ask("connect", way, size, addr)
    first.ask("wait_for_subscribers", len(others))
    rates = {}
    for messages, steps in counts.items():
        _run(first, others, _WARM_UP, messages)
        rates[messages] = _run(first, others, steps, messages)
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

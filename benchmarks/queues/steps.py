"""How many steps a second rank 0 gives to all other ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import median

from ..output import Report, Row
from ..timing import in_turns, ratio_and_range, ratios
from .ends import MSGEN, fresh_address
from .processes import Worker, WorkerError, close_parts
from .ranks import Rank

GLOO = "gloo count + PUB each"
WORLD_SIZES = (3, 5)
MESSAGES = (0, 4, 64)

_WARM_UP = 30
_MOST_STEPS = 20_000


_COLUMNS = {
    "ranks": "1 + {others}",
    "messages/step": "{messages}",
    "way": "{way}",
    "steps/s": "{steps_per_s:,.0f}",
    "us": "{us:.1f}",
    "x gloo": "{ratio:.1f}",
    "from": "{least_ratio:.1f}",
    "to": "{greatest_ratio:.1f}",
}


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
        row: Row = {"others": size - 1, "messages": messages, "way": way}
        row |= {"steps_per_s": median(mine), "us": 1e6 / median(mine)}
        rows.append(row | ratio_and_range(ratios(mine, base)))
        if way == MSGEN and messages == 4:
            title = f"step of 4 messages to {size - 1} ranks: times gloo's rate"
            report.target(title, rows[-1]["ratio"], least=10.0)
    report.table(
        "steps",
        "broadcast of steps: rank 0 passes encoded messages on, all other ranks decode them; "
        "until the last of them has",
        _COLUMNS,
        rows,
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

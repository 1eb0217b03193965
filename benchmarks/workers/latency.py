"""How long a request takes through a worker that does nothing, and its reply back.

The caller is the same for all ways: bare sockets that send encoded bytes, and take the reply's.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..output import Report
from ..queues.cases import BATCH, SMALL
from ..queues.ends import MSGEN, PYZMQ
from ..queues.latency import (
    LATENCY_COLUMNS,
    Percentiles,
    called,
    echoed,
    latency_row,
)
from ..queues.processes import Worker
from ..timing import in_turns
from .pools import RANKS, Pools, ranks_text, replies_of

_ECHOES = {"pyzmq": PYZMQ, "msgen queues, an echo": MSGEN}
_TARGETS = {1: 1.5, 2: 2.0}


def measure_latency(
    report: Report, players: Sequence[Worker], pools: Pools, folder: Path, trips: int
) -> None:
    """Measure all ways in turns, from the same calling process.

    Args:
        players: the caller, and the echo of the ways without a worker.
        trips: round trips of one measurement.
    """
    ranks_of = {ranks_text(ranks): ranks for ranks in RANKS}

    def measure(way: str) -> Percentiles:
        if way in _ECHOES:
            return echoed(players, folder, SMALL, _ECHOES[way], PYZMQ, trips)
        ranks = ranks_of[way]
        there, back = pools[ranks, BATCH].addr, replies_of(folder, ranks, BATCH)
        return called(players[0], SMALL, PYZMQ, there, back, trips)

    samples = in_turns([*_ECHOES, *ranks_of], report.rounds, measure)
    base = samples[next(iter(_ECHOES))]
    rows = [latency_row(SMALL, way, times, base) for way, times in samples.items()]
    for row in rows:
        if (most := _TARGETS.get(ranks_of.get(row["way"], 0))) is not None:
            title = f"request to reply, {row['way']}, p50: times pyzmq's round trip"
            report.target(title, row["p50_ratio"], most=most)
    report.table(
        "latency",
        "request to reply: to another process and back, one at a time",
        LATENCY_COLUMNS,
        rows,
    )

"""How long a request takes through a worker that does nothing, and its reply back.

The caller is the same for all ways: bare sockets that send encoded bytes, and take the reply's.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from msgen.runtime.launch import WorkerPool
from queue_cases import BATCH, SMALL
from queue_ends import MSGEN, PYZMQ, fresh_address
from queue_latency import Caller, Echo
from queue_workers import Worker, close_parts
from timing import ratio
from worker_pools import RANKS, replies_of

_WARM_UP = 100
ECHO = "msgen queues, an echo"


@dataclass
class LatencyRow:
    """One way's round trips; the ratios are its times divided by bare pyzmq's."""

    way: str
    p50_us: float
    p99_us: float
    p50_ratio: float
    p99_ratio: float


def measure_latency(
    players: Sequence[Worker],
    pools: Mapping[tuple[int, int], WorkerPool],
    folder: Path,
    rounds: int,
    trips: int,
) -> list[LatencyRow]:
    """Measure all ways in turns, from the same calling process.

    Args:
        players: the caller, and the echo of the ways without a worker.
        trips: round trips of one measurement.
    """
    ways = [PYZMQ, ECHO, *(ranks_text(ranks) for ranks in RANKS)]
    p50: dict[str, list[float]] = {way: [] for way in ways}
    p99: dict[str, list[float]] = {way: [] for way in ways}
    order = list(ways)
    shuffle = random.Random(0).shuffle
    for _ in range(rounds):
        shuffle(order)
        for way in order:
            times = _run(players, pools, folder, way, trips)
            percent = quantiles(times, n=100)
            p50[way].append(percent[49])
            p99[way].append(percent[98])
    return [
        LatencyRow(
            way,
            median(p50[way]) * 1e6,
            median(p99[way]) * 1e6,
            ratio(p50[way], p50[PYZMQ]),
            ratio(p99[way], p99[PYZMQ]),
        )
        for way in ways
    ]


def _run(
    players: Sequence[Worker],
    pools: Mapping[tuple[int, int], WorkerPool],
    folder: Path,
    way: str,
    trips: int,
) -> list[float]:
    caller, echo = players
    used = [caller]
    if way in (PYZMQ, ECHO):
        rival = PYZMQ if way == PYZMQ else MSGEN
        addresses = fresh_address(folder), fresh_address(folder)
        used.append(echo)
        echo.open(Echo, rival, SMALL, *addresses)
        caller.open(Caller, PYZMQ, SMALL, *addresses)
        echo.begin("run", _WARM_UP + trips)
    else:
        ranks = next(each for each in RANKS if ranks_text(each) == way)
        there = pools[ranks, BATCH].addr
        caller.open(Caller, PYZMQ, SMALL, there, replies_of(folder, ranks, BATCH))
    caller.ask("run", _WARM_UP)
    times: list[float] = caller.ask("run", trips)
    if echo in used:
        echo.result()
    close_parts(used)
    return times


def ranks_text(ranks: int) -> str:
    """Return the name of a pool's way."""
    return f"worker, {ranks} rank{'s' if ranks > 1 else ''}"


def print_latency(rows: Sequence[LatencyRow]) -> None:
    print("\nrequest to reply: to another process and back, 11 bytes, one at a time")
    print(f"  {'way':<24}{'p50 us':>10}{'p99 us':>10}{'x pyzmq: p50':>15}{'p99':>8}")
    for row in rows:
        print(
            f"  {row.way:<24}{row.p50_us:>10.1f}{row.p99_us:>10.1f}{row.p50_ratio:>15.2f}"
            f"{row.p99_ratio:>8.2f}"
        )

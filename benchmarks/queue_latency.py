"""How long a message takes to another process and back."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

from queue_cases import SMALL, TENSOR_4K, make_cases
from queue_ends import CODEC, MSGEN, PYZMQ, fresh_address, pull_end, push_end
from queue_workers import Worker, close_parts
from timing import ratio

_WARM_UP = 100


@dataclass
class LatencyRow:
    """One rival's round trips; the ratios are its times divided by bare pyzmq's."""

    case: str
    rival: str
    p50_us: float
    p99_us: float
    p50_ratio: float
    p99_ratio: float


class Echo:
    """A worker's part: it binds, receives, and sends back what it received."""

    def __init__(self, rival: str, case: str, there: str, back: str) -> None:
        self._pull = pull_end(rival, make_cases()[case], there, True)
        self._push = push_end(rival, make_cases()[case], back, True)

    def run(self, count: int) -> None:
        get, put = self._pull.get, self._push.put
        for _ in repeat(None, count):
            put(get())

    def close(self) -> None:
        self._pull.close()
        self._push.close()


class Caller:
    """A worker's part: it connects, sends, and waits for the echo."""

    def __init__(self, rival: str, case: str, there: str, back: str) -> None:
        self._push = push_end(rival, make_cases()[case], there, False)
        self._pull = pull_end(rival, make_cases()[case], back, False)

    def run(self, count: int) -> list[float]:
        """Return the seconds of each round trip."""
        put, value, get = self._push.put, self._push.value, self._pull.get
        times = []
        for _ in repeat(None, count):
            start = perf_counter()
            put(value)
            get()
            times.append(perf_counter() - start)
        return times

    def close(self) -> None:
        self._push.close()
        self._pull.close()


def measure_latency(
    players: Sequence[Worker], folder: Path, rounds: int, trips: int
) -> list[LatencyRow]:
    """Measure all cases in turns, each time through fresh sockets of the same two processes.

    Args:
        players: the caller and the echo.
        trips: round trips of one measurement.
    """
    keys = [
        (case, rival) for case in (SMALL, TENSOR_4K) for rival in (PYZMQ, CODEC, MSGEN)
    ]
    p50: dict[tuple[str, str], list[float]] = {key: [] for key in keys}
    p99: dict[tuple[str, str], list[float]] = {key: [] for key in keys}
    shuffle = random.Random(0).shuffle
    order = list(keys)
    for _ in range(rounds):
        shuffle(order)
        for key in order:
            percent = quantiles(_run(players, folder, key, trips), n=100)
            p50[key].append(percent[49])
            p99[key].append(percent[98])
    rows = []
    for key in keys:
        base = key[0], PYZMQ
        rows.append(
            LatencyRow(
                *key,
                median(p50[key]) * 1e6,
                median(p99[key]) * 1e6,
                ratio(p50[key], p50[base]),
                ratio(p99[key], p99[base]),
            )
        )
    return rows


def _run(
    players: Sequence[Worker], folder: Path, key: tuple[str, str], trips: int
) -> list[float]:
    caller, echo = players
    addresses = fresh_address(folder), fresh_address(folder)
    echo.open(Echo, key[1], key[0], *addresses)
    caller.open(Caller, key[1], key[0], *addresses)
    echo.begin("run", _WARM_UP + trips)
    caller.ask("run", _WARM_UP)
    times: list[float] = caller.ask("run", trips)
    echo.result()
    close_parts(players)
    return times


def print_latency(rows: Sequence[LatencyRow]) -> None:
    print(
        "\nround trip: put, the other process's get and put, get; medians over the rounds of "
        "each round's percentile"
    )
    print(
        f"  {'message':<17}{'way':<24}{'p50 us':>10}{'p99 us':>10}"
        f"{'x pyzmq: p50':>15}{'p99':>8}"
    )
    for row in rows:
        print(
            f"  {row.case if row.rival == PYZMQ else '':<17}{row.rival:<24}"
            f"{row.p50_us:>10.1f}{row.p99_us:>10.1f}{row.p50_ratio:>15.2f}{row.p99_ratio:>8.2f}"
        )

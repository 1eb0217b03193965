"""How long a message takes to another process and back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import NamedTuple

from ..output import Report, Row
from ..timing import in_turns, ratio
from .cases import SMALL, TENSOR_4K, make_cases
from .ends import CODEC, MSGEN, PYZMQ, fresh_address, pull_end, push_end
from .processes import Worker, close_parts

_WARM_UP = 100


LATENCY_COLUMNS = {
    "message": "{case}",
    "way": "{way}",
    "p50 us": "{p50_us:.1f}",
    "p99 us": "{p99_us:.1f}",
    "x pyzmq: p50": "{p50_ratio:.2f}",
    "p99": "{p99_ratio:.2f}",
}


class Percentiles(NamedTuple):
    """Of one measurement, in seconds."""

    p50: float
    p99: float


class Echo:
    """A worker's part: it binds, receives, and sends back what it received."""

    def __init__(self, rival: str, case: str, there: str, back: str) -> None:
        self._pull = pull_end(rival, make_cases()[case], there, True)
        self._push = push_end(rival, make_cases()[case], back, True)

    def run(self, count: int) -> None:
        get, put = self._pull.call, self._push.call
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
        put, value, get = self._push.call, self._push.value, self._pull.call
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
    report: Report, players: Sequence[Worker], folder: Path, trips: int
) -> None:
    """Measure all cases in turns, each time through fresh sockets of the same two processes.

    Args:
        players: the caller and the echo.
        trips: round trips of one measurement.
    """
    keys = [
        (case, rival) for case in (SMALL, TENSOR_4K) for rival in (PYZMQ, CODEC, MSGEN)
    ]
    samples = in_turns(
        keys, report.rounds, lambda key: echoed(players, folder, *key, key[1], trips)
    )
    rows = [latency_row(*key, samples[key], samples[key[0], PYZMQ]) for key in keys]
    report.table(
        "latency",
        "round trip: put, the other process's get and put, get; medians over the rounds of "
        "each round's percentile",
        LATENCY_COLUMNS,
        rows,
    )


def echoed(
    players: Sequence[Worker],
    folder: Path,
    case: str,
    echo_by: str,
    call_by: str,
    trips: int,
) -> Percentiles:
    """Time round trips from the first of two processes to the second.

    Args:
        echo_by, call_by: the rivals that the two use.
    """
    caller, echo = players
    addresses = fresh_address(folder), fresh_address(folder)
    echo.open(Echo, echo_by, case, *addresses)
    echo.begin("run", _WARM_UP + trips)
    times = called(caller, case, call_by, *addresses, trips)
    echo.result()
    close_parts([echo])
    return times


def called(
    caller: Worker, case: str, rival: str, there: str, back: str, trips: int
) -> Percentiles:
    """Time round trips to whoever answers at these addresses."""
    caller.open(Caller, rival, case, there, back)
    caller.ask("run", _WARM_UP)
    percent = quantiles(caller.ask("run", trips), n=100)
    close_parts([caller])
    return Percentiles(percent[49], percent[98])


def latency_row(
    case: str, way: str, times: Sequence[Percentiles], base: Sequence[Percentiles]
) -> Row:
    row: Row = {"case": case, "way": way}
    for name, mine, theirs in zip(Percentiles._fields, zip(*times), zip(*base)):
        row |= {f"{name}_us": median(mine) * 1e6, f"{name}_ratio": ratio(mine, theirs)}
    return row

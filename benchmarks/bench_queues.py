"""Compare msgen's queues and broadcast with bare sockets, zmq.asyncio and gloo.

All of it goes through real processes over ipc. Rivals send equal bytes, through the same
processes, in turns. Compare figures of one run only; where all processes have fewer cores than
threads, as on a small machine, figures say how they share them, too.

    python benchmarks/bench_queues.py [--only SECTION] [--rounds N] [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

try:
    import zmq
    from queue_async import AsyncRow, measure_async, print_async
    from queue_cases import SMALL, TENSOR_4K, TENSOR_32K, TEXT_4K, TEXT_32K
    from queue_ends import MSGEN
    from queue_latency import LatencyRow, measure_latency, print_latency
    from queue_rates import RateRow, measure_rates, print_rates
    from queue_steps import WORLD_SIZES, StepRow, measure_steps, print_steps
    from queue_workers import Worker, WorkerError, workers
    from timing import machine_facts
except ModuleNotFoundError as missing:
    print(
        f"bench: the package {missing.name!r} is missing; run: pip install 'msgen[bench]'",
        file=sys.stderr,
    )
    sys.exit(2)

PACKAGES = ("torch", "pyzmq", "msgpack", "uvloop")


@dataclass(frozen=True)
class Effort:
    """How much is measured.

    Attributes:
        rounds: that medians are taken of.
        slice_s: seconds of one measurement of a rate.
        trips: round trips of one measurement.
        pulls: messages of one measurement of an asynchronous pull.
    """

    rounds: int
    slice_s: float
    trips: int
    pulls: int


@dataclass
class Target:
    """A ratio that was measured, and what it should be at least."""

    what: str
    target: float
    ratio: float


Row = RateRow | LatencyRow | AsyncRow | StepRow
Section = Callable[[Sequence[Worker], Path, Effort], Sequence[Row]]


def main(argv: Sequence[str] | None = None) -> int:
    options = _parse(argv)
    effort = Effort(11, 0.12, 800, 8_000)
    if options.quick:
        effort = Effort(3, 0.05, 200, 3_000)
    if options.rounds:
        effort = Effort(options.rounds, effort.slice_s, effort.trips, effort.pulls)
    facts = machine_facts(PACKAGES)
    facts["libzmq"] = zmq.zmq_version()
    facts["cores"] = str(os.cpu_count())
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    print(
        f"medians of {effort.rounds} rounds; 'x' is a rate or a time divided by the other one's in "
        "the same round"
    )
    tables: dict[str, Sequence[Row]] = {}
    names = [options.only] if options.only else list(SECTIONS)
    ranks = WORLD_SIZES[-1] if "steps" in names else 2
    try:
        with (
            TemporaryDirectory(prefix="msgen-") as folder,
            workers([f"worker {index}" for index in range(ranks)]) as players,
        ):
            for name in names:
                tables[name] = SECTIONS[name](players, Path(folder), effort)
    except WorkerError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    targets = [target for rows in tables.values() for target in find_targets(rows)]
    print_targets(targets)
    if options.json:
        report: dict[str, Any] = {
            "machine": facts,
            "rounds": effort.rounds,
            "sections": {
                name: [asdict(row) for row in rows] for name, rows in tables.items()
            },
            "targets": [asdict(target) for target in targets],
        }
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 0


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Compare msgen's queues with bare sockets, zmq.asyncio and gloo."
    )
    parser.add_argument("--only", choices=list(SECTIONS), help="run one section")
    parser.add_argument("--rounds", type=int, help="rounds to take medians of (11)")
    parser.add_argument(
        "--quick", action="store_true", help="few, short rounds: a smoke test"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the figures to a file, too"
    )
    options = parser.parse_args(argv)
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds: expected 1 or more")
    return options


def run_rates(
    players: Sequence[Worker], folder: Path, effort: Effort
) -> Sequence[RateRow]:
    rows = measure_rates(players[:2], folder, effort.rounds, effort.slice_s)
    print_rates(rows)
    return rows


def run_latency(
    players: Sequence[Worker], folder: Path, effort: Effort
) -> Sequence[LatencyRow]:
    rows = measure_latency(players[:2], folder, effort.rounds, effort.trips)
    print_latency(rows)
    return rows


def run_async(
    players: Sequence[Worker], folder: Path, effort: Effort
) -> Sequence[AsyncRow]:
    rows = measure_async(players[:2], folder, effort.rounds, effort.pulls)
    print_async(rows)
    return rows


def run_steps(
    players: Sequence[Worker], folder: Path, effort: Effort
) -> Sequence[StepRow]:
    rows = measure_steps(players, folder, effort.rounds, effort.slice_s)
    print_steps(rows)
    return rows


SECTIONS: dict[str, Section] = {
    "rates": run_rates,
    "latency": run_latency,
    "async": run_async,
    "steps": run_steps,
}


def find_targets(rows: Sequence[Row]) -> list[Target]:
    """Pick the figures that have a target."""
    targets = []
    for row in rows:
        if isinstance(row, RateRow) and row.rival == MSGEN:
            for what, target in _RATE_TARGETS[row.case]:
                targets.append(Target(f"put and get, {what}", target, row.ratio))
        elif isinstance(row, AsyncRow) and row.rival == MSGEN:
            targets.append(Target(f"asynchronous pull on {row.loop}", 8.0, row.ratio))
        elif isinstance(row, StepRow) and row.way == MSGEN and row.messages == 4:
            targets.append(
                Target(
                    f"step of 4 messages to {row.world_size - 1} ranks", 10.0, row.ratio
                )
            )
    return targets


_RATE_TARGETS: dict[str, list[tuple[str, float]]] = {
    SMALL: [
        (f"{SMALL}, by the Python codec's target", 0.5),
        (f"{SMALL}, by a compiled codec's target", 0.7),
    ],
    **{name: [(name, 0.85)] for name in (TENSOR_4K, TEXT_4K, TENSOR_32K, TEXT_32K)},
}


def print_targets(targets: Sequence[Target]) -> None:
    if not targets:
        return
    print("\ntargets: how many times the rate of bare sockets, zmq.asyncio or gloo")
    print(f"  {'what':<50}{'target':>8}{'ratio':>10}")
    for each in targets:
        verdict = "ok" if each.ratio >= each.target else "MISSED"
        print(f"  {each.what:<50}{each.target:>8.2f}{each.ratio:>10.2f}  {verdict}")


if __name__ == "__main__":
    sys.exit(main())

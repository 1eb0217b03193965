"""Measure what workers add: to the time of a request, and to each message and step.

The handler does nothing, so that all that is seen is the way to it and back. Everything goes
through real processes over ipc, in turns. Compare figures of one run only; where there are fewer
cores than processes, as on a small machine, figures say how they share them, too.

    python benchmarks/bench_workers.py [--only SECTION] [--rounds N] [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

try:
    import zmq
    from queue_cases import BATCH
    from queue_workers import WorkerError, workers
    from timing import machine_facts
    from worker_latency import LatencyRow, measure_latency, print_latency, ranks_text
    from worker_pools import pools
    from worker_rates import BATCHED, RateRow, measure_rates, print_rates
    from worker_staging import StagingRow, measure_staging, print_staging
except ModuleNotFoundError as missing:
    print(
        f"bench: the package {missing.name!r} is missing; run: pip install 'msgen[bench]'",
        file=sys.stderr,
    )
    sys.exit(2)

PACKAGES = ("torch", "pyzmq", "msgpack")
SECTIONS = ("latency", "rates", "staging")
Row = LatencyRow | RateRow | StagingRow


def main(argv: Sequence[str] | None = None) -> int:
    options = _parse(argv)
    rounds, trips, slice_s = (3, 200, 0.05) if options.quick else (11, 800, 0.12)
    rounds = options.rounds or rounds
    facts = machine_facts(PACKAGES)
    facts["libzmq"] = zmq.zmq_version()
    facts["cores"] = str(os.cpu_count())
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    print(
        f"medians of {rounds} rounds; 'x' is a rate or a time divided by the other one's in the "
        "same round"
    )
    tables: dict[str, Sequence[Row]] = {}
    names = [options.only] if options.only else list(SECTIONS)
    try:
        with TemporaryDirectory(prefix="msgen-") as name:
            folder = Path(name)
            if "latency" in names or "rates" in names:
                _measure(folder, names, tables, rounds, trips, slice_s)
    except WorkerError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    if "staging" in names:
        tables["staging"] = staged = measure_staging(rounds)
        print_staging(staged)
    _print_targets(tables)
    if options.json:
        report: dict[str, Any] = {
            "machine": facts,
            "rounds": rounds,
            "sections": {
                name: [asdict(row) for row in rows] for name, rows in tables.items()
            },
        }
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 0


def _measure(
    folder: Path,
    names: Sequence[str],
    tables: dict[str, Sequence[Row]],
    rounds: int,
    trips: int,
    slice_s: float,
) -> None:
    with (
        workers(["sender", "receiver"]) as players,
        pools(folder, (1, BATCH)) as served,
    ):
        if "latency" in names:
            latencies = measure_latency(players, served, folder, rounds, trips)
            tables["latency"] = latencies
            print_latency(latencies)
        if "rates" in names:
            rates = measure_rates(players, served, folder, rounds, slice_s)
            tables["rates"] = rates
            print_rates(rates)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure what workers add.")
    parser.add_argument("--only", choices=SECTIONS, help="run one section")
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


_LATENCY_TARGETS = {ranks_text(1): 1.5, ranks_text(2): 2.0}
_RATE_TARGET = 0.5


def _print_targets(tables: dict[str, Sequence[Row]]) -> None:
    lines = []
    for row in (row for rows in tables.values() for row in rows):
        if isinstance(row, LatencyRow) and row.way in _LATENCY_TARGETS:
            most = _LATENCY_TARGETS[row.way]
            verdict = "ok" if row.p50_ratio <= most else "MISSED"
            lines.append(
                (
                    f"request to reply, {row.way}, p50",
                    f"<= {most}",
                    row.p50_ratio,
                    verdict,
                )
            )
        elif (
            isinstance(row, RateRow)
            and row.way == ranks_text(1)
            and row.sent == BATCHED
        ):
            verdict = "ok" if row.ratio >= _RATE_TARGET else "MISSED"
            lines.append(
                (
                    f"messages/s, {row.way}, {row.sent}",
                    f">= {_RATE_TARGET}",
                    row.ratio,
                    verdict,
                )
            )
    if lines:
        print(
            "\ntargets: times pyzmq's round trip; times the rate of put_many and get_many"
        )
        for what, target, ratio, verdict in lines:
            print(f"  {what:<50}{target:>8}{ratio:>10.2f}  {verdict}")


if __name__ == "__main__":
    sys.exit(main())

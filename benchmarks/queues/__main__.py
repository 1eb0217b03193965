"""Compare msgen's queues and broadcast with bare sockets, zmq.asyncio and gloo.

All of it goes through real processes over ipc. Rivals send equal bytes, through the same processes,
in turns. Where the processes have fewer cores than threads, figures say how they share them, too.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from ..output import Report
from .asynchronous import measure_async
from .latency import measure_latency
from .processes import WorkerError, workers
from .rates import measure_rates
from .steps import WORLD_SIZES, measure_steps


def main() -> int:
    report = Report(
        "queues",
        "Compare msgen's queues with bare sockets, zmq.asyncio and gloo.",
        ("rates", "latency", "async", "steps"),
        rounds=11,
    )
    slice_s, trips, pulls = (0.05, 200, 3_000) if report.quick else (0.12, 800, 8_000)
    ranks = WORLD_SIZES[-1] if "steps" in report.sections else 2
    names = [f"worker {index}" for index in range(ranks)]
    try:
        with (
            TemporaryDirectory(prefix="msgen-") as name,
            workers(names) as players,
        ):
            pair, folder = players[:2], Path(name)
            for section in report.sections:
                if section == "rates":
                    measure_rates(report, pair, folder, slice_s)
                elif section == "latency":
                    measure_latency(report, pair, folder, trips)
                elif section == "async":
                    measure_async(report, pair, folder, pulls)
                else:
                    measure_steps(report, players, folder, slice_s)
    except WorkerError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    report.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())

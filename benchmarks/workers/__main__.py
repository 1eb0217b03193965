"""Measure what workers add: to the time of a request, and to each message and step.

The handler does nothing, so that all that is seen is the way to it and back. Everything goes through
real processes over ipc, in turns. Where there are fewer cores than processes, figures say how they
share them, too.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from ..output import Report
from ..queues.processes import WorkerError, workers
from .latency import measure_latency
from .pools import start_pools
from .rates import measure_rates
from .staging import measure_staging


def main() -> int:
    report = Report(
        "workers",
        "Measure what workers add.",
        ("latency", "rates", "staging"),
        rounds=11,
    )
    slice_s, trips = (0.05, 200) if report.quick else (0.12, 800)
    try:
        if report.sections != ["staging"]:
            with (
                TemporaryDirectory(prefix="msgen-") as name,
                workers(["sender", "receiver"]) as players,
                start_pools(Path(name)) as pools,
            ):
                if "latency" in report.sections:
                    measure_latency(report, players, pools, Path(name), trips)
                if "rates" in report.sections:
                    measure_rates(report, players, pools, Path(name), slice_s)
    except WorkerError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    if "staging" in report.sections:
        measure_staging(report)
    report.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())

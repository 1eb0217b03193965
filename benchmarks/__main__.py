"""Run all benchmarks, keep their figures in results/, and draw the plot and the tables from them.

Options go to each benchmark: `python -m benchmarks --quick`.
"""

from __future__ import annotations

import subprocess
import sys

from .report import RESULTS, main

for name in ("codec", "queues", "workers", "cli"):
    command = [sys.executable, "-m", f"benchmarks.{name}", *sys.argv[1:]]
    done = subprocess.run([*command, "--json", RESULTS / f"{name}.json"], check=False)
    if done.returncode:
        sys.exit(done.returncode)
main()

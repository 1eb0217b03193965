"""How much the random, killing and loading tests do: a short run, or a long one with MSGEN_LONG=1."""

from __future__ import annotations

import os

LONG = os.environ.get("MSGEN_LONG") == "1"


def size(variable: str, short: int, long: int) -> int:
    """Return what the variable says; without it what `make test` or `make test-long` takes."""
    return int(os.environ.get(variable, long if LONG else short))

"""A row of the table of findings, which `msgen explain`, SARIF and the other formats read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

ERROR = "error"
WARNING = "warning"
NOTE = "note"


@dataclass(frozen=True)
class Rule:
    """A kind of finding. It stands beside the function that finds it.

    Attributes:
        id: stable, since waivers and people name it.
        purpose: what it finds, in a line.
        why: what would happen without it.
        instead: what to do.
        finder: the function that finds it.
        severity: `error`, `warning` or `note`.
    """

    id: str
    purpose: str
    why: str
    instead: str
    finder: Callable[..., object]
    severity: str = ERROR

"""A row of the table of findings, which `msgen explain`, SARIF and the other formats read."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

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


R = TypeVar("R", bound=Rule)


def find_rule(name: str, rules: Mapping[str, R]) -> R | None:
    """Return a rule by its id, in any case and with dashes or underscores."""
    return {_plain(id_): rule for id_, rule in rules.items()}.get(_plain(name))


def unknown_rule(name: str, rules: Mapping[str, Rule]) -> str:
    """Say that there is no such rule, and which one may be meant."""
    ids = {_plain(id_): id_ for id_ in sorted(rules)}
    close = difflib.get_close_matches(_plain(name), ids, n=1)
    hint = f"did you mean '{ids[close[0]]}'?" if close else "msgen rules lists them"
    return f"there is no rule '{name}'; {hint}"


def _plain(id_: str) -> str:
    return id_.upper().replace("-", "_")

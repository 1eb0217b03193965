"""Errors of schema authors: what is wrong, where, under which rule, and what to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from .rule import Rule


class Place(NamedTuple):
    """A position in a schema file; line and column count from 1."""

    path: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"

    def shifted(self, columns: int) -> Place:
        """Return the place ``columns`` characters to the right."""
        return Place(self.path, self.line, self.column + columns)


KeyPlaces: TypeAlias = tuple[tuple[str, Place], ...]
"""The keys that a declaration was written with, and where their values stand."""


@dataclass(frozen=True)
class Problem:
    """One finding about a schema file; they sort by place, then by rule."""

    place: Place
    rule: Rule
    message: str

    @property
    def severity(self) -> str:
        """`error` where the schema is wrong, `warning` for a finding of lint."""
        return self.rule.severity

    def __str__(self) -> str:
        return f"{self.place}: {self.severity}: {self.message} [{self.rule.id}]"

    def __lt__(self, other: Problem) -> bool:
        mine = (self.place, self.rule.id, self.message)
        return mine < (other.place, other.rule.id, other.message)


class SchemaError(Exception):
    """The schema files are wrong.

    Attributes:
        problems: every problem found in the run, sorted by place.
    """

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


class Reported(Exception):
    """A problem was reported, and what it is a part of cannot be built."""


@dataclass
class Problems:
    """Collects the problems of a run, so that all are reported and not only the first."""

    found: list[Problem] = field(default_factory=list)

    def add(self, place: Place, rule: Rule, message: str) -> None:
        # A value of the file may hold anything; an error stays one line that a terminal can show.
        self.found.append(Problem(place, rule, _printable(message)))

    def fail(self, place: Place, rule: Rule, message: str) -> Reported:
        """Add a problem; the caller raises what is returned."""
        self.add(place, rule, message)
        return Reported()

    def raise_if_any(self) -> None:
        """Raise SchemaError when anything was found."""
        if self.found:
            raise SchemaError(tuple(sorted(set(self.found))))


def _printable(text: str) -> str:
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )

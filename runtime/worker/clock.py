"""The step clock: what a rank is doing, in memory that its pool can read at any time.

Writing it costs no system call, and reading it needs nothing of the rank, which may hang with
Python's lock held.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic_ns
from typing import Any

CELLS = 5
"""64-bit integers that a clock needs."""

_NUMBER, _SINCE, _STEPS, _MESSAGES, _BAD = range(CELLS)


@dataclass(frozen=True)
class RankStats:
    """What a rank has done.

    Attributes:
        rank: which one.
        steps: that it has taken, those without messages included.
        messages: valid ones, in them.
        bad_messages: that were not valid, and were left out.
        in_step: seconds since the step began that it is in; None between steps.
    """

    rank: int
    steps: int
    messages: int
    bad_messages: int
    in_step: float | None


class StepClock:
    """Notes a rank's steps.

    Args:
        cells: memory of `CELLS` integers, all 0 at first; shared where another process reads them.
    """

    def __init__(self, cells: Any) -> None:
        self._cells = memoryview(cells).cast("B").cast("q")

    def begin(self, number: int) -> None:
        """A step has come."""
        self._cells[_NUMBER] = number
        self._cells[_SINCE] = monotonic_ns()

    def end(self, messages: int, bad: int) -> None:
        """The step is done.

        Args:
            messages: valid ones that it had.
            bad: others.
        """
        cells = self._cells
        cells[_STEPS] += 1
        cells[_MESSAGES] += messages
        if bad:
            cells[_BAD] += bad
        cells[_SINCE] = 0

    def refuse(self) -> None:
        """Count a message that was left out before its step."""
        self._cells[_BAD] += 1

    @property
    def running(self) -> tuple[int, float] | None:
        """The number of the step that runs, and its seconds so far; None between steps."""
        number, since = self._cells[_NUMBER], self._cells[_SINCE]
        if not since:
            return None
        return number, (monotonic_ns() - since) / 1e9

    def finished(self, number: int) -> bool:
        """Say whether a step is done."""
        running, since = self._cells[_NUMBER], self._cells[_SINCE]
        return running > number or (running == number and not since)

    @property
    def steps(self) -> int:
        """Steps that are done."""
        return self._cells[_STEPS]

    def stats(self, rank: int) -> RankStats:
        """Return what was noted."""
        running = self.running
        return RankStats(
            rank,
            self._cells[_STEPS],
            self._cells[_MESSAGES],
            self._cells[_BAD],
            None if running is None else running[1],
        )

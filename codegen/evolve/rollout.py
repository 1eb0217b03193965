"""In which order to upgrade processes, from what breaks in which direction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from .outcome import OK


@dataclass
class Rollout:
    """Collects which process has to be upgraded before which other.

    A reader that cannot take new messages goes before the senders; one that cannot take old
    messages goes after them. Where both hold, or the wishes go in a circle, no order helps.
    """

    together: set[str] = field(default_factory=set)
    before: set[tuple[str, str]] = field(default_factory=set)

    def add(
        self,
        reader: str,
        senders: Iterable[str],
        new_reads_old: str,
        old_reads_new: str,
    ) -> None:
        """Add what one group needs."""
        others = [each for each in senders if each != reader] or [
            f"what sends to {reader}"
        ]
        if new_reads_old != OK and old_reads_new != OK:
            self.together |= {reader, *others}
        elif old_reads_new != OK:
            self.before |= {(reader, each) for each in others}
        elif new_reads_old != OK:
            self.before |= {(each, reader) for each in others}

    def text(self, of_several: bool = False) -> str:
        """Return the order as a text: `any order`, `all at once: ...` or `..., then ...`.

        Args:
            of_several: it is of several findings, of which each may have an order of its own.
        """
        if not self.together and not self.before:
            return "any order"
        sorter: TopologicalSorter[str] = TopologicalSorter()
        for first, then in sorted(self.before):
            sorter.add(then, first)
        everyone = self.together | {each for pair in self.before for each in pair}
        at_once = f"all at once: {', '.join(sorted(everyone))}"
        if self.together:
            return at_once
        try:
            sorter.prepare()
        except CycleError:
            if of_several:
                return f"one change after the other, or {at_once}"
            return f"{at_once} (each reads what another sends)"
        steps = []
        while sorter.is_active():
            ready = sorter.get_ready()
            steps.append(" and ".join(sorted(ready)))
            sorter.done(*ready)
        return ", then ".join(steps)

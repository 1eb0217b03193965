"""Shows how far the start is: a live display on a terminal, else a line for each thing done."""

from __future__ import annotations

import sys
import time

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn


class StartDisplay:
    """The parts of a server that start, each with how long it takes.

    A context manager. What it writes goes to the standard error, so that the standard output has only
    what the server says once it is there.
    """

    def __init__(self) -> None:
        self._live: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._begun: dict[str, float] = {}
        if sys.stderr.isatty():
            self._live = Progress(
                SpinnerColumn(finished_text="[green]✓[/]"),
                TextColumn("{task.description:<14}"),
                TimeElapsedColumn(),
                TextColumn("{task.fields[state]}"),
                console=Console(stderr=True),
            )

    def __enter__(self) -> StartDisplay:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def begin(self, part: str, doing: str) -> None:
        """Show that a part has begun; again, to show what it does now."""
        self._begun.setdefault(part, time.monotonic())
        if self._live is None:
            print(f"{part}: {doing}", file=sys.stderr, flush=True)
        elif part in self._tasks:
            self._live.update(self._tasks[part], state=doing)
        else:
            self._tasks[part] = self._live.add_task(part, total=1, state=doing)

    def end(self, part: str, state: str, detail: str = "") -> None:
        """Show that a part is there."""
        if self._live is None:
            took = f"{state} after {time.monotonic() - self._begun[part]:.1f} s"
            print(f"{part}: {took} {detail}".rstrip(), file=sys.stderr, flush=True)
        else:
            text = f"{state} {detail}".rstrip()
            self._live.update(self._tasks[part], completed=1, state=text)

"""Processes that play the ends of queues: each does what the benchmark's own process asks of it.

A worker holds one part at a time, an object made in its process, and calls its methods on request.
Requests and results go through a pipe. A worker ends with its parent, even with one that is killed
while the worker waits for a message; and the parent waits for no result longer than `PATIENCE_S`.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

PATIENCE_S = 90.0
"""Seconds that a worker gets for one request: its first one imports torch."""
_ENDING_S = 5.0


class WorkerError(Exception):
    """A worker failed, died or did not answer; the text says which and why."""


class Part(Protocol):
    """What a worker plays."""

    def close(self) -> None:
        """Close its sockets."""


class Worker:
    """A process that plays parts.

    Args:
        name: for errors.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs,), name=name, daemon=True
        )
        self._process.start()
        theirs.close()
        self._asked = "start"

    def begin_open(self, make: Callable[..., Part], *args: Any) -> None:
        """Have it close its part and make another, without waiting for that."""
        self._request(make, args)

    def open(self, make: Callable[..., Part], *args: Any) -> None:
        """Have it close its part and make another."""
        self.begin_open(make, *args)
        self.result()

    def begin(self, method: str, *args: Any) -> None:
        """Have it call a method of its part, without waiting for the result."""
        self._request(method, args)

    def ask(self, method: str, *args: Any) -> Any:
        """Have it call a method of its part, and return the result."""
        self.begin(method, *args)
        return self.result()

    def result(self) -> Any:
        """Return the result of what was begun.

        Raises:
            WorkerError: it raised an error, died, or takes too long.
        """
        if not self._pipe.poll(PATIENCE_S):
            raise WorkerError(
                f"{self.name}: no answer to {self._asked!r} within {PATIENCE_S:.0f} s"
            )
        try:
            failure, value = self._pipe.recv()
        except (EOFError, OSError):
            self._process.join(_ENDING_S)
            raise WorkerError(
                f"{self.name}: died during {self._asked!r}, exit code {self._process.exitcode}"
            ) from None
        if failure is not None:
            raise WorkerError(f"{self.name}: {self._asked!r} failed\n{failure}")
        return value

    def end(self) -> None:
        """End the process: by its own will if it is idle, else by force."""
        self._pipe.close()
        self._process.join(_ENDING_S)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()
        self._process.close()

    def _request(self, what: Callable[..., Part] | str, args: tuple[Any, ...]) -> None:
        self._asked = what if isinstance(what, str) else what.__name__
        try:
            self._pipe.send((what, args))
        except OSError as error:
            raise WorkerError(f"{self.name}: cannot be reached: {error}") from None


@contextmanager
def workers(names: Sequence[str]) -> Iterator[list[Worker]]:
    """Start workers, and end them all."""
    with ExitStack() as stack:
        started = []
        for name in names:
            worker = Worker(name)
            stack.callback(worker.end)
            started.append(worker)
        yield started


def close_parts(players: Sequence[Worker]) -> None:
    """Have workers close their parts, one after the other: a sender before its receiver."""
    for player in players:
        player.ask("close")


def _serve(pipe: Connection) -> None:
    # The parent gets the interrupt, too, and ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    part: Any = None
    while True:
        try:
            what, args = pipe.recv()
        except (EOFError, OSError):
            break
        try:
            if isinstance(what, str):
                value = _call(part, what, args)
            else:
                if part is not None:
                    part.close()
                part, value = what(*args), None
                # What imports left behind would make each collection take long.
                gc.freeze()
        except Exception:
            pipe.send((traceback.format_exc(), None))
        else:
            pipe.send((None, value))
    if part is not None:
        part.close()


def _call(part: Any, method: str, args: tuple[Any, ...]) -> Any:
    """Call a method; the garbage collector runs between calls only."""
    gc.collect()
    gc.disable()
    try:
        return getattr(part, method)(*args)
    finally:
        gc.enable()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)

"""Processes that play the ends of queues: each does what the benchmark's own process asks of it.

A worker holds one part at a time, an object made in its process, and calls its methods on request.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import wait
from typing import Any, Protocol

from ..timing import collector_paused

PATIENCE_S = 90.0
"""Seconds that a worker gets for one request: its first one imports torch."""


class WorkerError(Exception):
    """A worker failed, died or did not answer; the text says which, its cause why."""


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
        spawn = multiprocessing.get_context("spawn")
        self._executor = futures.ProcessPoolExecutor(
            1, spawn, initializer=_end_with_parent
        )
        self._begun: futures.Future[Any] = self._executor.submit(os.getpid)
        self._pid: int = self.result()

    def begin_open(self, make: Callable[..., Part], *args: Any) -> None:
        """Have it close its part and make another, without waiting for that."""
        self._begun = self._executor.submit(_open, make, *args)

    def open(self, make: Callable[..., Part], *args: Any) -> None:
        """Have it close its part and make another."""
        self.begin_open(make, *args)
        self.result()

    def begin(self, method: str, *args: Any) -> None:
        """Have it call a method of its part, without waiting for the result."""
        self._begun = self._executor.submit(_call, method, *args)

    def ask(self, method: str, *args: Any) -> Any:
        """Have it call a method of its part, and return the result."""
        self.begin(method, *args)
        return self.result()

    def result(self) -> Any:
        """Return the result of what was begun.

        Raises:
            WorkerError: it raised an error, died, or takes too long.
        """
        try:
            return self._begun.result(PATIENCE_S)
        except futures.TimeoutError:
            raise WorkerError(f"{self.name}: no answer in {PATIENCE_S:.0f} s") from None
        except Exception as error:
            raise WorkerError(f"{self.name}: {error.__cause__ or error}") from error

    def end(self) -> None:
        """End the process: by force if it is still at work."""
        if not self._begun.done():
            os.kill(self._pid, signal.SIGKILL)
        self._executor.shutdown()


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


# What follows runs in the worker's process.

_part: Part | None = None


def _open(make: Callable[..., Part], *args: Any) -> None:
    global _part
    if _part is not None:
        _part.close()
    _part = make(*args)
    # What imports left behind would make each collection take long.
    gc.freeze()


def _call(method: str, *args: Any) -> Any:
    with collector_paused():
        return getattr(_part, method)(*args)


def _end_with_parent() -> None:
    """End this process with its parent, even if it waits for a message then."""
    # The parent gets the interrupt, too, and ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()

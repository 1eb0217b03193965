"""Other processes for tests: real ones, started quickly, and never left behind.

They are forked from a server that has imported torch and msgen once, and has no queue.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

GENEROUS = 120.0
"""Seconds that a loaded machine may take; waits end as soon as the event is there."""

CONTEXT = multiprocessing.get_context("forkserver")
# Installed modules: the server of Python 3.11 does not look into the tests' folder.
CONTEXT.set_forkserver_preload(
    ["msgen.generated.backend", "msgen.generated.tokenizer", "msgen.runtime.launch"]
)


@contextmanager
def running(target: Callable[..., None], *args: Any) -> Iterator[BaseProcess]:
    """Run a function of `children` in another process, which is gone afterwards."""
    process = CONTEXT.Process(target=target, args=args)
    process.start()
    try:
        yield process
    finally:
        if process.is_alive():
            process.kill()
        process.join()


def finished(process: BaseProcess) -> None:
    """Wait until a process has ended well."""
    process.join(GENEROUS)
    assert process.exitcode == 0


def answer(connection: Connection) -> Any:
    """Return what another process sends; it may die without a word."""
    assert connection.poll(GENEROUS), "the other process sent nothing"
    return connection.recv()


def until(condition: Callable[[], object], within: float = GENEROUS) -> None:
    """Wait for a condition that nothing signals."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.005)


def is_alive(pid: int) -> bool:
    """Say whether a process is there and has not ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"

"""A rank as its pool sees it: a process, the events that it sent, and how to end it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from multiprocessing.sharedctypes import RawArray
from time import monotonic
from typing import Any

from msgen.runtime.codec import wire
from msgen.runtime.worker.clock import CELLS, StepClock
from msgen.runtime.worker.events import AT, ENDED, FAILED, READY
from msgen.runtime.worker.rank import process as rank_process
from msgen.runtime.worker.rank.guardian import open_process, signal_rank
from msgen.runtime.worker.rank.settings import RankSettings

_EXIT_CODE_S = 2.0
"""The process has ended: its exit code is there as soon as the kernel has cleaned up after it."""
_STACKS_MS = 500
"""A signal's handler writes stacks at once, but for a process that is stopped or swapped out."""
_MORE_STACKS_MS = 50
"""All that a rank writes comes in one go."""
_STARTING = "starting its process"


class RankHandle:
    """Starts a rank's process, and keeps what is known of it.

    Args:
        settings: of the rank.
        context: of multiprocessing; how to start it.

    Attributes:
        rank: which one.
        pipe: events come from here, orders go there.
        clock: the rank's steps.
        ready: whether it has said so.
        addr: where its requests go, if it is rank 0.
        failure: its event of an error: class, text, traceback, step, frames.
        in_order: whether it reported that it ended in order.
        answered: errors that its handler has answered, by step.
        silent: whether its pipe is closed, so that it will report nothing more.
        alive: whether its process has been started, and not been seen to end.
        pid: its process id; 0 before it was started.
        end: a descriptor that is readable once the process has ended.
        exit_code: of the process; negative for a signal's number.
    """

    def __init__(self, settings: RankSettings, context: BaseContext) -> None:
        self.rank = settings.rank
        self.pipe, theirs = context.Pipe()
        self._stacks, write_stacks = context.Pipe(duplex=False)
        # Anonymous shared memory: its file is unlinked before the process starts.
        cells: Any = RawArray("q", CELLS)
        self.clock = StepClock(cells)
        self._process: BaseProcess = context.Process(  # type: ignore[attr-defined]
            target=rank_process.main,
            args=(settings, theirs, write_stacks, cells),
            name=f"msgen-rank-{settings.rank}",
        )
        self.ready = False
        self.addr = ""
        self.failure: tuple[str, str, str, int | None, list[list[bytes]]] | None = None
        self.in_order = False
        self.answered: dict[int, str] = {}
        self.silent = False
        self.alive = False
        self.exit_code: int | None = None
        self._at = _STARTING
        self._at_since = monotonic()
        self._theirs = (theirs, write_stacks)
        self.pid = 0
        self.end = -1
        self._owns_end = False

    def start(self) -> None:
        """Start the process."""
        try:
            self._process.start()
        finally:
            for each in self._theirs:
                each.close()
        self.alive = True
        self.pid = self._process.pid or 0
        # A process that the rank forks may keep multiprocessing's sentinel open.
        found = open_process(self.pid)
        self._owns_end = found is not None
        self.end = self._process.sentinel if found is None else found

    def where(self) -> str:
        """Say how far it is, for errors."""
        since = monotonic() - self._at_since
        return f"rank {self.rank} (process {self.pid}) has been {self._at} for {since:.1f} s"

    @property
    def doing(self) -> str:
        """What it was last known to do."""
        running = self.clock.running
        if running is not None:
            return f"in step {running[0]}"
        if self.ready:
            return f"between steps, after {self.clock.steps} of them"
        return f"while {self._at}"

    def read(self, other: Callable[[RankHandle, list[Any]], None]) -> None:
        """Take in the events that are there.

        Args:
            other: is given those that concern the whole pool.
        """
        try:
            while self.pipe.poll():
                event = wire.unpack(self.pipe.recv_bytes())
                self._note(event)
                other(self, event)
        except (EOFError, OSError):
            self.silent = True

    def _note(self, event: list[Any]) -> None:
        kind, *facts = event
        if kind == AT:
            self._at, self._at_since = facts[0], monotonic()
        elif kind == READY:
            self.ready, self.addr = True, facts[0]
        elif kind == FAILED:
            self.failure = tuple(facts)
        elif kind == ENDED:
            self.in_order = True

    @property
    def has_begun(self) -> bool:
        """Whether it has reported anything yet."""
        return self._at != _STARTING

    def order(self, what: bytes) -> None:
        """Give it an order, if it still listens."""
        with contextlib.suppress(OSError):
            self.pipe.send_bytes(what)

    def reap(self) -> None:
        """Take note of its end, and end what it has started."""
        if self.has_begun:
            # The number of its group is not given to another one while any of it lives.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        self._process.join(_EXIT_CODE_S)
        self.exit_code = self._process.exitcode
        self.alive = False

    def signal(self, number: int) -> None:
        """Send a signal to the process and to those that it started."""
        if self.alive:
            signal_rank(self.pid, number)

    def stacks(self) -> str:
        """Return the stacks of its threads; empty where they cannot be had."""
        if not (self.alive and self.has_begun):
            return ""
        # Before its first event, the signal would end it.
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, rank_process.STACKS_SIGNAL)
        descriptor = self._stacks.fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        text = b""
        while poll.poll(_STACKS_MS if not text else _MORE_STACKS_MS):
            piece = os.read(descriptor, 1 << 16)
            if not piece:
                break
            text += piece
        return text.decode(errors="replace")

    def close(self) -> None:
        """Close the pipes; a process that lives ends by that."""
        self.pipe.close()
        self._stacks.close()
        if not self.alive and self.pid:
            self._process.close()
        if self._owns_end and self.end >= 0:
            os.close(self.end)
            self.end = -1


def block_interrupts() -> Any:
    """Keep SIGINT from processes that start now, until they ignore it; return what was blocked."""
    from multiprocessing import resource_tracker

    # It unblocks SIGINT when it starts.
    resource_tracker.ensure_running()
    return signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})

"""A rank as its pool sees it: a process, what it has told, and how to end it."""

from __future__ import annotations

import contextlib
import multiprocessing
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
from msgen.runtime.worker.rank import process as rank_process
from msgen.runtime.worker.rank.settings import RankPlan
from msgen.runtime.worker.rank.watch import process_end
from msgen.runtime.worker.reports import AT, ENDED, FAILED, READY

_EXIT_CODE_PATIENCE_S = 2.0
_STACKS_PATIENCE_MS = 500
_STARTING = "starting its process"


class RankHandle:
    """Starts a rank's process, and keeps what is known of it.

    Args:
        plan: for the rank.
        context: of multiprocessing; how to start it.

    Attributes:
        rank: which one.
        pipe: reports come from here, orders go there.
        clock: the rank's steps.
        ready: whether it has said so.
        addr: where its requests go, if it is rank 0.
        failure: its report of an error: class, text, traceback, step, frames.
        in_order: whether it has told that it ended in order.
        answered: errors that its handler has answered, by step.
        silent: whether its pipe is closed, so that nothing more will be told.
        alive: whether its process has been started, and not been seen to end.
        pid: its process id; 0 before it was started.
        end: a descriptor that is readable once the process has ended.
        exit_code: of the process; negative for a signal's number.
    """

    def __init__(self, plan: RankPlan, context: BaseContext) -> None:
        self.rank = plan.rank
        self.pipe, theirs = context.Pipe()
        self._stacks, write_stacks = context.Pipe(duplex=False)
        # Anonymous shared memory: its file is unlinked before the process starts.
        cells: Any = RawArray("q", CELLS)
        self.clock = StepClock(cells)
        self._process: BaseProcess = context.Process(  # type: ignore[attr-defined]
            target=rank_process.main,
            args=(plan, theirs, write_stacks, cells),
            name=f"msgen-rank-{plan.rank}",
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
        found = process_end(self.pid)
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
        """Take in the reports that are there.

        Args:
            other: is given those that concern the whole pool.
        """
        try:
            while self.pipe.poll():
                report = wire.unpack(self.pipe.recv_bytes())
                self._note(report)
                other(self, report)
        except (EOFError, OSError):
            self.silent = True

    def _note(self, report: list[Any]) -> None:
        kind, *facts = report
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
        """Whether it has told anything yet."""
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
        self._process.join(_EXIT_CODE_PATIENCE_S)
        self.exit_code = self._process.exitcode
        self.alive = False

    def signal(self, number: int) -> None:
        """Send a signal to the process and to those that it started."""
        pid = self.pid
        if not self.alive:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getpgid(pid) == pid:
                os.killpg(pid, number)
            else:
                os.kill(pid, number)

    def stacks(self) -> str:
        """Return the stacks of its threads; empty where they cannot be had."""
        if not (self.alive and self.has_begun):
            return ""
        # Before its first report, the signal would end it.
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, rank_process.STACKS_SIGNAL)
        descriptor = self._stacks.fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        text = b""
        while poll.poll(_STACKS_PATIENCE_MS if not text else 50):
            piece = os.read(descriptor, 1 << 16)
            if not piece:
                break
            text += piece
        return text.decode(errors="replace")

    def close(self) -> None:
        """Let go of pipes; a process that lives ends by that."""
        self.pipe.close()
        self._stacks.close()
        if not self.alive and self.pid:
            self._process.close()
        if self._owns_end and self.end >= 0:
            os.close(self.end)
            self.end = -1


def choose_context(start_method: str) -> BaseContext:
    """Return how to start processes.

    Raises:
        ValueError: not a method by which a rank can be started.
    """
    if start_method not in ("spawn", "forkserver"):
        raise ValueError(
            f"start_method: expected 'spawn' or 'forkserver', got {start_method!r}; threads of torch "
            "and CUDA do not stand a fork"
        )
    return multiprocessing.get_context(start_method)


def block_interrupts() -> Any:
    """Keep SIGINT from processes that start now, until they ignore it; return what was blocked."""
    from multiprocessing import resource_tracker

    # It unblocks SIGINT when it starts.
    resource_tracker.ensure_running()
    return signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})

"""A rank under torchrun: its place comes from the environment, the others from torch's store.

There is no pool here: torchrun starts the ranks, on every machine, and ends them when one fails.
What the pool does otherwise, a rank does for itself: it ends with torchrun's agent, and watches its
own step timeout.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import sys
import threading
import time
from dataclasses import replace
from datetime import timedelta
from types import FrameType
from typing import NoReturn

from msgen.runtime.worker.clock import CELLS, StepClock
from msgen.runtime.worker.events import StepFailed
from msgen.runtime.worker.step_io import StopRequest

from .meeting import StoreMeeting, own_host
from .process import leave_failed, run
from .settings import RankSettings
from .watch import Watch, leave

_log = logging.getLogger(__name__)

VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
"""What torchrun sets in the environment of a rank."""


class LogEvents:
    """Logs what happens in a rank, and keeps its error.

    Args:
        rank: which one.
    """

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self.error: BaseException | None = None

    def at(self, what: str) -> None:
        _log.info("rank %d: %s", self._rank, what)

    def ready(self, addr: str) -> None:
        _log.info("rank %d: ready%s", self._rank, addr and f", requests go to {addr}")

    def pong(self, token: bytes) -> None:
        _log.info("rank %d: a ping came through", self._rank)

    def answered(self, number: int, error: Exception) -> None:
        _log.warning("rank %d: step %d was answered: %r", self._rank, number, error)

    def failed(self, error: BaseException) -> None:
        if isinstance(error, StepFailed) and error.__cause__ is not None:
            _log.error("rank %d: failed in step %d", self._rank, error.number)
            error = error.__cause__
        self.error = error

    def ended(self) -> None:
        _log.info("rank %d: ended", self._rank)


def run_under_torchrun(settings: RankSettings, host: str | None = None) -> None:
    """Be the rank that the environment says.

    Args:
        settings: of a rank; its place is taken from the environment.
        host: the address at which other machines reach this one; None finds it out.

    Raises:
        ValueError: a variable of torchrun is missing or no number.
        Exception: what the rank failed with.
    """
    rank, world_size, local_rank, port = map(
        _number, ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT")
    )
    settings = replace(
        settings,
        rank=rank,
        world_size=world_size,
        local_rank=local_rank,
        parent=os.getppid(),
    )
    stop = StopRequest()
    _stop_at_signals(stop)
    Watch(None, settings.parent, stop).start()
    clock = StepClock(bytearray(8 * CELLS))
    step_timeout = settings.options.step_timeout
    if step_timeout is not None:
        _watch_steps(rank, clock, step_timeout)
    meeting = _meet(settings, host or own_host(os.environ["MASTER_ADDR"], port))
    events = LogEvents(rank)
    if run(settings, meeting, events, clock, stop):
        events.ended()
    elif events.error is not None:
        raise events.error


def _number(variable: str) -> int:
    value = os.environ.get(variable, "")
    if not value.isdecimal():
        raise ValueError(
            f"{variable}: expected a number in the environment, got {value!r}; start with torchrun"
        )
    return int(value)


def _meet(settings: RankSettings, host: str) -> StoreMeeting:
    import torch.distributed as dist

    rank, world_size = settings.rank, settings.world_size
    timeout = settings.options.ready_timeout
    store, _, _ = next(
        dist.rendezvous("env://", rank, world_size, timeout=timedelta(seconds=timeout))  # type: ignore[attr-defined]
    )
    prefixed = dist.PrefixStore("msgen", store)  # type: ignore[attr-defined]
    return StoreMeeting(prefixed, rank, world_size, host, timeout)


def _stop_at_signals(stop: StopRequest) -> None:
    """Stop in order at the first signal, at once at the second.

    Only rank 0 can stop in order, and all others with it; torchrun signals them all.
    """

    def on_signal(number: int, frame: FrameType | None) -> None:
        if stop.asked:
            leave()
        stop.drain()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)


def _watch_steps(rank: int, clock: StepClock, limit: float) -> None:
    """End the process when a step takes too long, in a thread that ends with it."""

    def watch() -> NoReturn:
        while True:
            time.sleep(min(1.0, limit / 4))
            running = clock.running
            if running is not None and running[1] > limit:
                _log.error(
                    "rank %d: step %d has taken %.1f s, the step timeout is %g s; its threads:",
                    rank,
                    *running,
                    limit,
                )
                faulthandler.dump_traceback(sys.stderr, all_threads=True)
                leave_failed()

    threading.Thread(target=watch, name="msgen-step-watch", daemon=True).start()

"""Supervision: one thread watches the pipes and processes of all ranks together.

The first failure ends all ranks. A rank that dies takes others with it, which then report that
their peer is gone; so what comes within a moment of the first failure is gathered, and the error
names the rank that most likely began.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from time import monotonic
from typing import Any

from .errors import WorkerError
from .failures import exited_error, failed_error, not_ready_error, timeout_error
from .rank_handle import RankHandle
from .reports import ANSWERED, FAILED, PONG

_GATHER_S = 0.3
_LOOK_EVERY_S = 0.5
_GRACE_S = 1.0
"""What a rank that failed gets to send the replies that are on their way."""


class Supervisor:
    """Watches ranks, and ends them all when one fails.

    Args:
        handles: of the ranks, started.
        step_timeout: seconds that a step may take; None for ever.
        decode: makes messages of frames, for errors.
        ended: called in the supervising thread once no process is left.
    """

    def __init__(
        self,
        handles: Sequence[RankHandle],
        step_timeout: float | None,
        decode: Callable[[list[list[bytes]]], tuple[Any, ...]],
        ended: Callable[[], None],
    ) -> None:
        self._handles = handles
        self._step_timeout = step_timeout
        self._decode = decode
        self._on_end = ended
        self._changed = threading.Condition()
        self._pongs: dict[bytes, set[int]] = {}
        self._wake_reader, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        self._stopping = False
        self._suspects: list[WorkerError] = []
        self._decide_at: float | None = None
        self._kill_at: float | None = None
        self.error: WorkerError | None = None
        self.ended = False
        self._thread = threading.Thread(
            target=self._run, name="msgen-supervisor", daemon=True
        )

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    # For the pool, from any thread

    def wait_ready(self, timeout: float) -> str:
        """Wait until all ranks are ready; return where requests go.

        Raises:
            WorkersNotReady: they are not in time; all are ended.
            WorkerError: one failed; all are ended.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self.error or self.ended or all(h.ready for h in self._handles),
                timeout,
            )
            if self.error is None and not all(h.ready for h in self._handles):
                self.error = not_ready_error(self._handles, timeout)
        if self.error is not None:
            self.end_now()
            raise self.error
        return self._handles[0].addr

    def wait_end(self, timeout: float | None) -> bool:
        """Wait until no process is left; say whether that is so."""
        with self._changed:
            return bool(self._changed.wait_for(lambda: self.ended, timeout))

    def wait_pongs(self, token: bytes, timeout: float) -> tuple[int, ...]:
        """Wait until every rank has told that a ping came through; return those that have not."""
        with self._changed:
            pongs = self._pongs.setdefault(token, set())
            self._changed.wait_for(
                lambda: self.error or self.ended or len(pongs) == len(self._handles),
                timeout,
            )
            del self._pongs[token]
            return tuple(h.rank for h in self._handles if h.rank not in pongs)

    def expect(self, token: bytes) -> None:
        """Note a ping that is about to be sent."""
        with self._changed:
            self._pongs[token] = set()

    def order(self, what: bytes) -> None:
        """Give all ranks an order to stop; their ends are no failures from now on."""
        self._stopping = True
        for handle in self._handles:
            handle.order(what)

    def signal(self, number: int) -> None:
        """Send a signal to all ranks that live."""
        self._stopping = True
        for handle in self._handles:
            handle.signal(number)

    def end_now(self) -> None:
        """Kill all ranks, and wait until they are gone."""
        self.signal(signal.SIGKILL)
        self.wait_end(10.0)

    # The thread

    def _run(self) -> None:
        try:
            while any(handle.alive for handle in self._handles):
                self._look()
        except BaseException as error:
            self.signal(signal.SIGKILL)
            with self._changed:
                self.error = self.error or WorkerError(
                    f"the pool's supervision failed: {error!r}"
                )
            raise
        finally:
            for handle in self._handles:
                handle.read(self._note)
            self._decide()
            self._on_end()
            with self._changed:
                self.ended = True
                self._changed.notify_all()

    def _look(self) -> None:
        waited: list[Any] = [self._wake_reader]
        for handle in self._handles:
            if handle.alive:
                waited += (handle.pipe, handle.end)
        ready = set(wait(waited, self._patience()))
        if self._wake_reader in ready:
            os.read(self._wake_reader, 1024)
        for handle in self._handles:
            if handle.alive and (handle.pipe in ready or handle.end in ready):
                handle.read(self._note)
                if handle.end in ready:
                    handle.reap()
                    handle.read(self._note)
                    self._note_end(handle)
        self._look_at_clocks()
        now = monotonic()
        if self._decide_at is not None and now >= self._decide_at:
            self._decide()
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_at = None
            self.signal(signal.SIGKILL)
        with self._changed:
            self._changed.notify_all()

    def _patience(self) -> float:
        until = [at for at in (self._decide_at, self._kill_at) if at is not None]
        patience = _LOOK_EVERY_S
        if self._step_timeout is not None:
            patience = min(patience, max(0.01, self._step_timeout / 4))
        return max(0.0, min([patience, *(at - monotonic() for at in until)]))

    def _note(self, handle: RankHandle, report: list[Any]) -> None:
        kind = report[0]
        if kind == PONG:
            with self._changed:
                if report[1] in self._pongs:
                    self._pongs[report[1]].add(handle.rank)
        elif kind == ANSWERED:
            handle.answered = (report[1], f"{report[2]}: {report[3]}")
        elif kind == FAILED:
            self._suspect(failed_error(handle, self._decode))

    def _note_end(self, handle: RankHandle) -> None:
        in_order = handle.in_order and handle.exit_code == 0
        if not (in_order or self._stopping or handle.failure is not None):
            self._suspect(exited_error(handle))

    def _look_at_clocks(self) -> None:
        if self._step_timeout is None or self._suspects or self.error:
            return
        for handle in self._handles:
            running = handle.clock.running if handle.alive else None
            if running is not None and running[1] > self._step_timeout:
                self._suspect(timeout_error(handle, *running, self._step_timeout))

    def _suspect(self, error: WorkerError) -> None:
        self._suspects.append(error)
        if self._decide_at is None:
            self._decide_at = monotonic() + _GATHER_S

    def _decide(self) -> None:
        self._decide_at = None
        if not self._suspects or self.error is not None:
            return
        with self._changed:
            self.error = min(self._suspects, key=_blame)
            self._changed.notify_all()
        for handle in self._handles:
            if handle.failure is None:
                handle.signal(signal.SIGKILL)
        self._kill_at = monotonic() + _GRACE_S


_PEER_GONE = ("RankLost", "PublisherLost", "StepGap", "DistNetworkError")
_PEER_GONE_TEXTS = (
    "gloo",
    "Connection closed by peer",
    "Connection reset by peer",
    "NCCL",
)


def _blame(error: WorkerError) -> int:
    """Order suspects: who ended without a word, who failed by itself, who lost a peer."""
    if error.type in ("Exited", "StepTimeout"):
        return 0
    if error.type.rpartition(".")[2] in _PEER_GONE or any(
        text in error.message for text in _PEER_GONE_TEXTS
    ):
        return 2
    return 1

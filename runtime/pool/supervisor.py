"""Supervision: one thread watches the pipes and processes of all ranks together.

The first failure ends all ranks. A rank that dies takes others with it, which then report that
their peer is gone; so what comes within a moment of the first failure is gathered, and the error
names the rank that most likely began.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from time import monotonic
from typing import Any

from msgen.runtime.errors import WorkerError
from msgen.runtime.worker.events import ANSWERED, FAILED, PONG
from msgen.runtime.worker.rank.process import FAILED_LINGER_S

from .failures import (
    exited_error,
    failed_error,
    not_ready_error,
    out_of_step_error,
    timeout_error,
)
from .rank import RankHandle

_GATHER_S = 0.3
"""Ranks that lose a peer say so within milliseconds; a loaded machine gets a hundred times that."""
_LOOK_EVERY_S = 0.5
"""Events wake the thread; what has none (clocks of other steps' answers) is seen that late at most."""
_ENDING_S = 10.0
"""Killed processes with much GPU memory take seconds to be gone."""


class Supervisor:
    """Watches ranks, and ends them all when one fails.

    Args:
        handles: of the ranks, started.
        step_timeout: seconds that a step may take; None for ever.
        decode: makes messages of frames, for errors.
        gone: called with the process id of each rank that has ended.
        ended: called once no process is left; both in the supervising thread.
    """

    def __init__(
        self,
        handles: Sequence[RankHandle],
        step_timeout: float | None,
        decode: Callable[[list[list[bytes]]], tuple[Any, ...]],
        gone: Callable[[int], None],
        ended: Callable[[], None],
    ) -> None:
        self._handles = handles
        self._step_timeout = step_timeout
        self._decode = decode
        self._on_gone = gone
        self._on_end = ended
        self._changed = threading.Condition()
        self._pongs: dict[bytes, set[int]] = {}
        self._killing = False
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
            WorkersNotReady: they are not in time.
            WorkerError: one failed, or all have ended already.
        """
        with self._changed:
            self._changed.wait_for(self._is_decided, timeout)
            in_time = self._is_decided()
        if not in_time:
            self._fail(not_ready_error(self._handles, timeout))
        if self.error is not None:
            raise self.error
        return self._handles[0].addr

    def _is_decided(self) -> bool:
        ready = all(handle.ready for handle in self._handles)
        return self.error is not None or self.ended or ready

    def _fail(self, error: WorkerError) -> None:
        """Note the error that ends the pool; the first one counts."""
        with self._changed:
            if self.error is None:
                self.error = error
            self._changed.notify_all()

    def wait_end(self, timeout: float | None) -> bool:
        """Wait until no process is left; say whether that is so."""
        with self._changed:
            return bool(self._changed.wait_for(lambda: self.ended, timeout))

    def wait_pongs(self, token: bytes, timeout: float) -> tuple[int, ...]:
        """Wait until every rank has reported the ping; return the ranks that have not."""
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
        """Give all ranks an order to stop."""
        for handle in self._handles:
            handle.order(what)

    def signal(self, number: int) -> None:
        """Send a signal to all ranks that live; their ends are no failures from now on."""
        self._killing = True
        for handle in self._handles:
            handle.signal(number)

    def end_now(self) -> None:
        """Kill all ranks, and wait until they are gone."""
        self.signal(signal.SIGKILL)
        self.wait_end(_ENDING_S)

    # The thread

    def _run(self) -> None:
        try:
            while any(handle.alive for handle in self._handles):
                self._look()
            self._decide()
        except Exception as error:
            self._fail(WorkerError(f"the supervision of the ranks failed: {error!r}"))
            self.signal(signal.SIGKILL)
            raise
        finally:
            self._on_end()
            with self._changed:
                self.ended = True
                self._changed.notify_all()

    def _look(self) -> None:
        alive = [handle for handle in self._handles if handle.alive]
        ends = [handle.end for handle in alive]
        waited: list[Any] = [*ends, *(each.pipe for each in alive if not each.silent)]
        ready = set(wait(waited, self._until_next()))
        for handle in alive:
            if handle.pipe in ready or handle.end in ready:
                handle.read(self._note)
            if handle.end in ready:
                self._note_end(handle)
        self._look_at_clocks()
        self._look_at_answers()
        now = monotonic()
        if self._decide_at is not None and now >= self._decide_at:
            self._decide()
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_at = None
            self.signal(signal.SIGKILL)
        with self._changed:
            self._changed.notify_all()

    def _until_next(self) -> float:
        until = [at for at in (self._decide_at, self._kill_at) if at is not None]
        seconds = _LOOK_EVERY_S
        if self._step_timeout is not None:
            seconds = min(seconds, max(0.01, self._step_timeout / 4))
        return max(0.0, min([seconds, *(at - monotonic() for at in until)]))

    def _note(self, handle: RankHandle, event: list[Any]) -> None:
        kind = event[0]
        if kind == PONG:
            with self._changed:
                if event[1] in self._pongs:
                    self._pongs[event[1]].add(handle.rank)
        elif kind == ANSWERED:
            handle.answered[event[1]] = f"{event[2]}: {event[3]}"
        elif kind == FAILED:
            self._suspect(failed_error(handle, self._decode))

    def _note_end(self, handle: RankHandle) -> None:
        handle.reap()
        self._on_gone(handle.pid)
        if not (handle.in_order or self._killing or handle.failure is not None):
            self._suspect(exited_error(handle))

    def _look_at_clocks(self) -> None:
        if self._step_timeout is None or self._decide_at is not None or self.error:
            return
        late = [
            (handle, *running)
            for handle in self._handles
            if handle.alive
            and (running := handle.clock.running) is not None
            and running[1] > self._step_timeout
        ]
        if late:
            self._suspect(timeout_error(late, self._step_timeout))

    def _look_at_answers(self) -> None:
        """Find a rank that answered an error which another one did not have."""
        for handle in self._handles:
            for step in list(handle.answered):
                others = [
                    other for other in self._handles if step not in other.answered
                ]
                done = [other for other in others if other.clock.finished(step)]
                for other in done:
                    # It reports an answered error before the end of the step.
                    other.read(self._note)
                    if step not in other.answered:
                        self._suspect(out_of_step_error(handle, step, other))
                if done or not others:
                    for each in self._handles:
                        each.answered.pop(step, None)

    def _suspect(self, error: WorkerError) -> None:
        self._suspects.append(error)
        if self._decide_at is None:
            self._decide_at = monotonic() + _GATHER_S

    def _decide(self) -> None:
        self._decide_at = None
        if not self._suspects or self.error is not None:
            return
        self._fail(min(self._suspects, key=_blame))
        for handle in self._handles:
            if handle.failure is None:
                handle.signal(signal.SIGKILL)
        self._kill_at = monotonic() + FAILED_LINGER_S


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

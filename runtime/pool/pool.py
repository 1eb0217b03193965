"""The pool of workers: starts the ranks, waits for them, watches over them, and ends them."""

from __future__ import annotations

import atexit
import contextlib
import inspect
import logging
import multiprocessing
import os
import secrets
import signal
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

from msgen.runtime.errors import PingTimeout, QueueFull, WorkerError, WrongProcess
from msgen.runtime.queues.blocking import ZmqPushQueue
from msgen.runtime.sockets import addresses, binding
from msgen.runtime.sockets.curve import Curve
from msgen.runtime.worker.clock import RankStats
from msgen.runtime.worker.rank.guardian import Guardian
from msgen.runtime.worker.rank.imports import load_codec
from msgen.runtime.worker.rank.settings import PoolOptions, first_rank
from msgen.runtime.worker.rank.watch import DRAIN, STOP
from msgen.runtime.worker.requests import PING

from .rank import RankHandle, block_interrupts
from .supervisor import Supervisor

_log = logging.getLogger(__name__)

_TERMINATE_S = 2.0
"""What ranks get between SIGTERM and SIGKILL: to remove their files."""
_AT_EXIT_S = 5.0
"""A program that ends with a pool in it waits so long for steps to finish."""


P = ParamSpec("P")


def _arguments_of(
    options: Callable[P, PoolOptions],
) -> Callable[
    [Callable[[WorkerPool, PoolOptions], None]],
    Callable[Concatenate[WorkerPool, P], None],
]:
    """Let a method take the arguments of `PoolOptions` in place of one, typed as they are there."""

    def decorate(
        method: Callable[[WorkerPool, PoolOptions], None],
    ) -> Callable[Concatenate[WorkerPool, P], None]:
        def taking(self: WorkerPool, /, *args: P.args, **kwargs: P.kwargs) -> None:
            method(self, options(*args, **kwargs))

        return taking

    return decorate


class WorkerPool:
    """Runs a handler in one process per rank, between a queue of requests and one of replies.

    A context manager: it is entered when all ranks are ready, and left when all are gone.

    Args:
        handler: `package.module:Class`, derived from InferenceHandler.
        others: by keyword; `PoolOptions` says what they mean, and has their defaults.

    Attributes:
        addr: where requests go; a free port that was asked for is filled in once the ranks are ready.

    Raises:
        ValueError, TypeError, ImportError, AddressError: as for `PoolOptions`.
    """

    __signature__ = inspect.signature(PoolOptions)

    @_arguments_of(PoolOptions)
    def __init__(self, options: PoolOptions) -> None:
        self._ping_keys: Curve | None = None
        security = options.requests_security
        if security is not None:
            self._ping_keys = Curve.client(security.public)
            allowed = _with_client(security, self._ping_keys.public)
            options = replace(options, requests_security=allowed)
        self._options = options
        self._settings = first_rank(options, secrets.token_hex(8))
        self._codec = load_codec(options.request_codec, "request_codec")
        self._pid = os.getpid()
        self._handles: list[RankHandle] = []
        self._supervisor: Supervisor | None = None
        self._guardian: Guardian | None = None
        self.addr = self._settings.requests

    # Life

    def __enter__(self) -> WorkerPool:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.stop()
        if kind is None:
            self.check()

    def start(self) -> None:
        """Start the ranks, and wait until all are ready.

        Raises:
            WorkersNotReady: they are not within `ready_timeout`; all are ended.
            WorkerError: a rank failed; all are ended.
        """
        if self._supervisor is not None:
            raise ValueError("the pool was started before; make a new one")
        supervisor = self._supervisor = Supervisor(
            self._handles,
            self._options.step_timeout,
            self._decode,
            self._forget,
            self._clean_up,
        )
        atexit.register(_end_at_exit, weakref.ref(self))
        try:
            try:
                self._start_ranks()
            finally:
                supervisor.start()
            self.addr = supervisor.wait_ready(self._options.ready_timeout) or self.addr
        except BaseException:
            supervisor.end_now()
            raise

    def _start_ranks(self) -> None:
        self._guardian = Guardian()
        for path in self._files():
            self._guardian.keep_clean(path)
        start = multiprocessing.get_context(self._options.start_method)
        blocked = block_interrupts()
        try:
            for rank in range(self._options.ranks):
                settings = replace(self._settings, rank=rank, local_rank=rank)
                handle = RankHandle(settings, start)
                self._handles.append(handle)
                handle.start()
                self._guardian.watch(handle.pid)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def stop(self, *, drain: bool = True, timeout: float | None = None) -> bool:
        """End all ranks; a second time does nothing.

        In order first: rank 0 takes what requests are there, the handler works until it is not
        busy, all ranks close it and end. What has not ended in time is terminated, then killed.
        Ctrl-C while this waits kills at once.

        Args:
            drain: False leaves out what is queued and what the handler has begun: the ranks end after
                the current step.
            timeout: seconds for all that is done in order, instead of `stop_timeout`.

        Returns:
            Whether all ranks ended in order.
        """
        supervisor = self._supervisor
        if supervisor is None or os.getpid() != self._pid:
            return True
        try:
            supervisor.order(DRAIN if drain else STOP)
            if not supervisor.wait_end(
                self._options.stop_timeout if timeout is None else timeout
            ):
                supervisor.signal(signal.SIGTERM)
                if not supervisor.wait_end(_TERMINATE_S):
                    supervisor.end_now()
        except BaseException:
            supervisor.end_now()
            raise
        forced = [handle.rank for handle in self._handles if not handle.in_order]
        if forced and supervisor.error is None:
            _log.warning(
                "ranks %s did not stop in order, and were ended",
                ", ".join(map(str, forced)),
            )
        return not forced

    def kill(self) -> None:
        """Kill all ranks, without waiting; `stop` afterwards returns soon."""
        if self._supervisor is not None and os.getpid() == self._pid:
            self._supervisor.signal(signal.SIGKILL)

    # Use

    def check(self) -> None:
        """Raise if a rank has failed; does not wait.

        Raises:
            WorkerError: one has, and all are ended or about to be.
        """
        supervisor = self._started()
        if supervisor.error is not None:
            raise supervisor.error.with_traceback(None)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the pool has ended: `stop` of another thread, of the handler, or a failure.

        Args:
            timeout: seconds; None waits for ever.

        Returns:
            Whether it has ended.

        Raises:
            WorkerError: a rank failed.
        """
        ended = self._started().wait_end(timeout)
        self.check()
        return ended

    def ping(self, timeout: float = 10.0) -> float:
        """Send a ping the way of requests, through the queue and a step of every rank.

        Args:
            timeout: seconds until every rank must have answered.

        Returns:
            Seconds that it took.

        Raises:
            PingTimeout: not every rank has answered in time; the pool goes on.
            WorkerError: a rank has failed, or the pool has ended.
        """
        supervisor = self._started()
        self._check_running()
        token = secrets.token_bytes(8)
        start = time.monotonic()
        supervisor.expect(token)
        with contextlib.suppress(QueueFull):
            self._send_ping(token, timeout)
        missing = supervisor.wait_pongs(token, start + timeout - time.monotonic())
        self._check_running()
        if missing:
            raise self._ping_error(missing, timeout)
        return time.monotonic() - start

    def _check_running(self) -> None:
        self.check()
        if self._started().ended:
            raise WorkerError("the pool has ended; start a new one")

    def _send_ping(self, token: bytes, timeout: float) -> None:
        security = self._ping_keys
        with ZmqPushQueue(
            self.addr,
            create=False,
            codec=self._codec,
            security=security,
            linger=timeout,
        ) as queue:
            queue.put_raw(PING + token, timeout)

    def _ping_error(self, missing: tuple[int, ...], timeout: float) -> PingTimeout:
        details = "; ".join(
            f"rank {rank} is {self._handles[rank].doing}" for rank in missing
        )
        return PingTimeout(
            f"no answer to a ping within {timeout:g} s: {details}", missing
        )

    @property
    def stats(self) -> list[RankStats]:
        """What each rank has done so far."""
        return [handle.clock.stats(handle.rank) for handle in self._handles]

    @property
    def pids(self) -> list[int]:
        """The process ids of the ranks, in order."""
        return [handle.pid for handle in self._handles]

    def _started(self) -> Supervisor:
        if os.getpid() != self._pid:
            raise WrongProcess(
                f"the pool was started in process {self._pid}, before this one was forked from it; "
                "use it there"
            )
        if self._supervisor is None:
            raise ValueError("the pool is not started; use it as a context manager")
        return self._supervisor

    # For the supervisor

    def _decode(self, messages: list[list[bytes]]) -> tuple[Any, ...]:
        """Decode the messages of a step that failed."""
        decoded = []
        for frames in messages:
            with contextlib.suppress(Exception):
                decoded.append(self._codec.decode_frames(frames))
        return tuple(decoded)

    def _forget(self, pid: int) -> None:
        if self._guardian is not None:
            self._guardian.forget(pid)

    def _files(self) -> list[Path]:
        """Return the files that the ranks make, and may leave when they are killed."""
        bound = [self._settings.steps, self.addr]
        if self._options.bind_replies:
            bound.append(self._options.replies)
        found = [addresses.parse(addr, create=True).path for addr in bound]
        return [
            Path(self._settings.rendezvous),
            *(path for path in found if path is not None),
        ]

    def _clean_up(self) -> None:
        """Remove what killed ranks left; called when no process is left."""
        rendezvous, *sockets = self._files()
        for path in sockets:
            binding.remove_stale_file(path)
        rendezvous.unlink(missing_ok=True)
        for handle in self._handles:
            handle.close()
        if self._guardian is not None:
            self._guardian.dismiss()


def _with_client(server: Curve, public: bytes) -> Curve:
    """Return the keys of a binding end that lets one more client in."""
    if server.clients is None:
        return server
    return replace(server, clients=server.clients | {public})


def _end_at_exit(pool: weakref.ref[WorkerPool]) -> None:
    found = pool()
    if found is not None:
        found.stop(timeout=_AT_EXIT_S)

"""The pool of workers: starts the ranks, waits for them, watches over them, and ends them."""

from __future__ import annotations

import atexit
import contextlib
import os
import secrets
import signal
import time
import weakref
from collections.abc import Mapping
from dataclasses import replace
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from types import TracebackType
from typing import Any

from . import addresses, binding
from .blocking_queues import ZmqPushQueue
from .endpoint import HIGH_WATER_MARK
from .errors import PingTimeout, QueueFull, WrongProcess
from .quarantine import DEAD_LETTER_BYTES
from .rank_handle import RankHandle, block_interrupts, choose_context
from .rank_plan import QueuePlan, RankPlan, load_codec, split_name
from .security import Curve
from .step_clock import RankStats
from .supervisor import Supervisor
from .watch import DRAIN, STOP
from .worker import MAX_STEP_MESSAGES
from .worker_steps import PING

__all__ = ["WorkerPool"]

READY_S = 300.0
"""Seconds until all ranks must be ready, by default."""
STOP_S = 30.0
"""Seconds that ranks get to stop in order, by default."""
REPLY_LINGER_S = 5.0

_TERMINATE_S = 2.0
_AT_EXIT_S = 5.0


class WorkerPool:
    """Runs a handler in one process per rank, between a queue of requests and one of replies.

    A context manager: it is entered when all ranks are ready, and left when all are gone.

    Args:
        handler: `package.module:Class`, derived from InferenceHandler; imported by the ranks alone.
        requests: address of the requests' queue, which rank 0 binds. None makes an ipc address,
            which `addr` tells.
        replies: address of the replies' queue, to which rank 0 connects.
        request_codec, reply_codec: `package.module:CODEC`.
        options: keyword arguments of the handler's class; they are pickled.
        ranks: how many processes.
        device: `cpu`, or `cuda` for one GPU a rank.
        max_step_messages: messages of one call of the handler, at most.
        ready_timeout: seconds until all ranks must be ready.
        step_timeout: seconds that a step may take; None for ever.
        reply_timeout: seconds that replies may wait while their queue is full; None for ever.
        stop_timeout: seconds that the ranks get to stop in order.
        dead_letters: file that keeps requests that are no valid messages; None keeps none.
        dead_letter_bytes: how large it may become.
        hwm: messages that each of the two queues holds.
        requests_security, replies_security: CURVE keys of the two queues, for tcp.
        bind_replies: whether rank 0 binds the replies' queue, too.
        start_method: `spawn`, or `forkserver`.

    Raises:
        ValueError: an argument is out of range, or no name.
        TypeError: the options cannot be pickled.
        ImportError: a codec cannot be imported.
        AddressError: an address is malformed.
    """

    def __init__(
        self,
        handler: str,
        *,
        replies: str,
        request_codec: str,
        reply_codec: str,
        requests: str | None = None,
        options: Mapping[str, Any] | None = None,
        ranks: int = 1,
        device: str = "cpu",
        max_step_messages: int = MAX_STEP_MESSAGES,
        ready_timeout: float = READY_S,
        step_timeout: float | None = None,
        reply_timeout: float | None = None,
        stop_timeout: float = STOP_S,
        dead_letters: str | os.PathLike[str] | None = None,
        dead_letter_bytes: int = DEAD_LETTER_BYTES,
        hwm: int = HIGH_WATER_MARK,
        requests_security: Curve | None = None,
        replies_security: Curve | None = None,
        bind_replies: bool = False,
        start_method: str = "spawn",
    ) -> None:
        _check_range("ranks", ranks, 1)
        _check_range("max_step_messages", max_step_messages, 1)
        for what, seconds in (
            ("ready_timeout", ready_timeout),
            ("step_timeout", step_timeout),
            ("stop_timeout", stop_timeout),
            ("reply_timeout", reply_timeout),
        ):
            if seconds is not None:
                _check_range(what, seconds, 0)
        if device not in ("cpu", "cuda"):
            raise ValueError(f"device: expected 'cpu' or 'cuda', got {device!r}")
        split_name(handler, "handler")
        self._codec = load_codec(request_codec, "request_codec")
        load_codec(reply_codec, "reply_codec")
        options = dict(options or {})
        _check_options(options)
        self._context = choose_context(start_method)
        self._run = secrets.token_hex(8)
        group = self._codec.group
        self._requests = requests or addresses.ipc_address(group, self._run)
        addresses.parse(self._requests, create=True)
        addresses.parse(replies, create=bind_replies)
        self._ready_timeout = ready_timeout
        self._step_timeout = step_timeout
        self._stop_timeout = stop_timeout
        self._ping_keys = _ping_keys(requests_security)
        self._plan = RankPlan(
            rank=0,
            world_size=ranks,
            local_rank=0,
            device=device,
            handler=handler,
            handler_options=options,
            requests=QueuePlan(
                self._requests,
                request_codec,
                True,
                {
                    "hwm": hwm,
                    "security": _with_ping(requests_security, self._ping_keys),
                },
            ),
            replies=QueuePlan(
                replies,
                reply_codec,
                bind_replies,
                {"hwm": hwm, "security": replies_security, "linger": REPLY_LINGER_S},
            ),
            steps=addresses.ipc_address(f"{group}.steps", self._run),
            rendezvous=str(addresses.runtime_folder() / f"ranks-{self._run}"),
            max_step_messages=max_step_messages,
            step_timeout=step_timeout,
            reply_timeout=reply_timeout,
            ready_timeout=ready_timeout,
            dead_letters=None
            if dead_letters is None
            else str(Path(dead_letters).absolute()),
            dead_letter_bytes=dead_letter_bytes,
            parent=os.getpid(),
        )
        self._pid = os.getpid()
        self._handles: list[RankHandle] = []
        self._supervisor: Supervisor | None = None
        self.addr = self._requests
        """Where requests go; a free port that was asked for is filled in once the ranks are ready."""

    # Life

    def __enter__(self) -> WorkerPool:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        if error is None:
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
            self._handles, self._step_timeout, self._decode, self._clean_up
        )
        atexit.register(_end_at_exit, weakref.ref(self))
        try:
            self._start_ranks()
            supervisor.start()
            self.addr = supervisor.wait_ready(self._ready_timeout) or self.addr
        except BaseException:
            supervisor.end_now()
            raise

    def _start_ranks(self) -> None:
        blocked = block_interrupts()
        try:
            for rank in range(self._plan.world_size):
                plan = replace(self._plan, rank=rank, local_rank=rank)
                handle = RankHandle(plan, self._context)
                self._handles.append(handle)
                handle.start()
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
                self._stop_timeout if timeout is None else timeout
            ):
                supervisor.signal(signal.SIGTERM)
                if not supervisor.wait_end(_TERMINATE_S):
                    supervisor.end_now()
        except BaseException:
            supervisor.end_now()
            raise
        return all(handle.in_order for handle in self._handles)

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
            WorkerError: a rank has failed.
        """
        supervisor = self._started()
        self.check()
        token = secrets.token_bytes(8)
        start = time.monotonic()
        supervisor.expect(token)
        with contextlib.suppress(QueueFull):
            self._send_ping(token, timeout)
        missing = supervisor.wait_pongs(token, start + timeout - time.monotonic())
        self.check()
        if missing:
            raise self._ping_error(missing, timeout)
        return time.monotonic() - start

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
        told = "; ".join(
            f"rank {rank} is {self._handles[rank].doing}" for rank in missing
        )
        return PingTimeout(f"no answer to a ping within {timeout:g} s: {told}", missing)

    @property
    def stats(self) -> list[RankStats]:
        """What each rank has done so far."""
        return [handle.clock.stats(handle.rank) for handle in self._handles]

    @property
    def pids(self) -> list[int]:
        """The process ids of the ranks, in order."""
        return [handle.pid for handle in self._handles if handle.pid is not None]

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

    def _clean_up(self) -> None:
        """Remove what killed ranks left; called when no process is left."""
        for addr in (self._plan.steps, self.addr):
            path = addresses.parse(addr, create=True).path
            if path is not None:
                binding.remove_stale_file(path)
        with contextlib.suppress(OSError):
            Path(self._plan.rendezvous).unlink()
        for handle in self._handles:
            handle.close()


def _check_range(what: str, value: float, least: float) -> None:
    if not value >= least:
        raise ValueError(f"{what}: expected {least:g} or more, got {value}")


def _check_options(options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        try:
            ForkingPickler.dumps(value)
        except Exception as error:
            raise TypeError(
                f"options[{name!r}]: cannot be sent to the ranks' processes: {error}; pass what the "
                "handler can make it of"
            ) from None


def _ping_keys(server: Curve | None) -> Curve | None:
    """Return keys for pings to a queue with keys."""
    return None if server is None else Curve.client(server.public)


def _with_ping(server: Curve | None, ping: Curve | None) -> Curve | None:
    """Return a queue's keys with those of pings among its clients."""
    if server is None or ping is None or server.clients is None:
        return server
    return replace(server, clients=server.clients | {ping.public})


def _end_at_exit(pool: weakref.ref[WorkerPool]) -> None:
    found = pool()
    if found is not None:
        found.stop(timeout=_AT_EXIT_S)

"""The process of a rank, from its start to its end."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

import torch

from .blocking_queues import ZmqPullQueue, ZmqPushQueue
from .codec import Codec
from .handler import WorkerContext
from .publisher import StepPublisher
from .quarantine import DeadLetters, Logged, Quarantine, Unnoted
from .rank_plan import RankPlan, load_codec, load_handler
from .reports import PipeReporter, Reporter
from .step_clock import StepClock
from .stop_request import StopRequest
from .subscriber import StepSubscriber
from .watch import Watch
from .worker import InferenceWorker
from .worker_ends import Broadcast, FirstRank, NoOthers, OtherRank, WorkerEnd

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

STACKS_SIGNAL = signal.SIGUSR1
"""Makes a rank write the stacks of its threads, also while it holds Python's lock."""


def main(plan: RankPlan, pipe: Connection, stacks: Connection, cells: Any) -> None:
    """Be a rank of a pool on this machine.

    Args:
        plan: what to do.
        pipe: to the pool and back.
        stacks: where stacks are written to.
        cells: the step clock's memory.
    """
    _settle_in(stacks.fileno())
    stop = StopRequest()
    Watch(pipe, plan.parent, stop).start()
    reporter = PipeReporter(pipe)
    try:
        run(plan, reporter, StepClock(cells), stop)
    except BaseException as error:
        reporter.failed(error)
        _leave_failed()
    reporter.ended()


def _settle_in(stacks: int) -> None:
    """Take the process's place: Ctrl-C is for the parent, and stacks can be asked for."""
    faulthandler.register(STACKS_SIGNAL, file=stacks, all_threads=True)
    with contextlib.suppress(PermissionError):
        os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The parent has blocked it, so that no Ctrl-C comes before it is ignored.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _leave_failed() -> None:
    """End the process; threads of torch that wait for other ranks would hold up an ordinary exit."""
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(1)


def run(
    plan: RankPlan, reporter: Reporter, clock: StepClock, stop: StopRequest
) -> None:
    """Set a rank up, and take steps until the last one."""
    with ExitStack() as stack:
        reporter.at("importing the codecs")
        requests = load_codec(plan.requests.codec, "request_codec")
        replies = load_codec(plan.replies.codec, "reply_codec")
        reporter.at("opening the queues")
        opened = _open(plan, requests, replies, stack)
        reporter.at("importing the handler")
        cls = load_handler(plan.handler)
        device = _choose_device(plan)
        reporter.at("joining the process group")
        group = stack.enter_context(_process_group(plan))
        reporter.at("setting the handler up")
        handler = cls(**plan.handler_options)
        handler.setup(
            WorkerContext(
                plan.rank,
                plan.world_size,
                plan.local_rank,
                device,
                group,
                plan.handler_options,
                stop.stop,
            )
        )
        stack.callback(handler.close)
        reporter.at("waiting for the other ranks")
        end, quarantine = opened.finish(plan, stop)
        reporter.ready(opened.addr)
        InferenceWorker(
            handler,
            end,
            requests,
            limit=plan.max_step_messages,
            stage=_stay,
            quarantine=quarantine,
            clock=clock,
            reporter=reporter,
        ).run()


def _stay(messages: list[Any]) -> None:
    """On the CPU, tensors stay where they are."""


class _First:
    """What rank 0 opens."""

    def __init__(
        self,
        plan: RankPlan,
        requests: Codec[Any],
        replies: Codec[Any],
        stack: ExitStack,
    ) -> None:
        letters = None
        if plan.dead_letters is not None:
            letters = DeadLetters(plan.dead_letters, plan.dead_letter_bytes)
            stack.callback(letters.close)
        self._quarantine = Logged(letters)
        # Closed last: replies that are on their way get the time they need.
        self._replies = stack.enter_context(
            ZmqPushQueue(
                plan.replies.addr,
                plan.replies.create,
                replies,
                timeout=plan.reply_timeout,
                **plan.replies.options,
            )
        )
        self._publisher = None
        if plan.world_size > 1:
            self._publisher = stack.enter_context(
                StepPublisher(
                    plan.steps,
                    requests,
                    plan.world_size,
                    timeout=plan.step_timeout,
                    security=plan.steps_security,
                )
            )
        self._requests = stack.enter_context(
            ZmqPullQueue(
                plan.requests.addr,
                plan.requests.create,
                requests,
                **plan.requests.options,
            )
        )
        self.addr = self._requests.addr

    def finish(self, plan: RankPlan, stop: StopRequest) -> tuple[WorkerEnd, Quarantine]:
        others: Broadcast | NoOthers = NoOthers()
        if self._publisher is not None:
            self._publisher.wait_for_subscribers(timeout=plan.ready_timeout)
            others = Broadcast(self._publisher)
        end = FirstRank(
            self._requests,
            self._replies,
            others,
            stop,
            plan.max_step_messages,
            lambda step, error: self._quarantine.take(step, (), error),
        )
        return end, self._quarantine


class _Other:
    """What any other rank opens."""

    addr = ""

    def __init__(
        self,
        plan: RankPlan,
        requests: Codec[Any],
        replies: Codec[Any],
        stack: ExitStack,
    ) -> None:
        self._subscriber = stack.enter_context(
            StepSubscriber(
                plan.steps,
                requests,
                plan.rank,
                plan.world_size,
                security=plan.steps_security,
            )
        )

    def finish(self, plan: RankPlan, stop: StopRequest) -> tuple[WorkerEnd, Quarantine]:
        return OtherRank(self._subscriber), Unnoted()


def _open(
    plan: RankPlan, requests: Codec[Any], replies: Codec[Any], stack: ExitStack
) -> _First | _Other:
    """Open what the rank needs; wrong addresses are told of before a model is loaded."""
    return (_Other if plan.rank else _First)(plan, requests, replies, stack)


def _choose_device(plan: RankPlan) -> torch.device:
    """Return the rank's device, and make it the current one.

    Raises:
        RuntimeError: the machine has no such device.
    """
    if plan.device == "cpu":
        if "OMP_NUM_THREADS" not in os.environ:
            # Ranks that each start a thread per core get in each other's way.
            torch.set_num_threads(max(1, (os.cpu_count() or 1) // plan.world_size))
        return torch.device("cpu")
    count = torch.cuda.device_count()
    if plan.local_rank >= count:
        raise RuntimeError(
            f"device 'cuda': local rank {plan.local_rank} needs cuda:{plan.local_rank}, this machine "
            f"has {count} such devices; start fewer ranks, or use device='cpu'"
        )
    device = torch.device("cuda", plan.local_rank)
    torch.cuda.set_device(device)
    return device


@contextmanager
def _process_group(plan: RankPlan) -> Iterator[ProcessGroup | None]:
    """Join the ranks' process group, on this machine by a file of their own."""
    if plan.world_size == 1:
        yield None
        return
    import torch.distributed as dist

    if "GLOO_SOCKET_IFNAME" not in os.environ:
        os.environ["GLOO_SOCKET_IFNAME"] = "lo" if sys.platform == "linux" else "lo0"
    dist.init_process_group(
        "nccl" if plan.device == "cuda" else "gloo",
        store=dist.FileStore(plan.rendezvous, plan.world_size),  # type: ignore[attr-defined]
        rank=plan.rank,
        world_size=plan.world_size,
    )
    try:
        yield dist.group.WORLD
    finally:
        dist.destroy_process_group()

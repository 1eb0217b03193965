"""The process of a rank, from its start to its end."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from msgen.runtime.broadcast.publisher import StepPublisher
from msgen.runtime.broadcast.subscriber import StepSubscriber
from msgen.runtime.codec.codec import Codec
from msgen.runtime.errors import DecodeError
from msgen.runtime.queues.blocking import ZmqPushQueue
from msgen.runtime.worker.clock import StepClock
from msgen.runtime.worker.ends import (
    Broadcast,
    FirstRank,
    NoOthers,
    OtherRank,
    WorkerEnd,
)
from msgen.runtime.worker.handler import WorkerContext
from msgen.runtime.worker.loop import InferenceWorker
from msgen.runtime.worker.quarantine import DeadLetters, Logged, Quarantine, Unnoted
from msgen.runtime.worker.reports import PipeReporter, Reporter
from msgen.runtime.worker.requests import RequestQueue
from msgen.runtime.worker.staging import choose_staging
from msgen.runtime.worker.stop_request import StopRequest

from .meeting import LocalMeeting, Meeting
from .names import load_codec, load_handler
from .settings import RankPlan
from .watch import Watch

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

STACKS_SIGNAL = signal.SIGUSR1
"""Makes a rank write the stacks of its threads, also while it holds Python's lock."""
STEPS_AHEAD = 32
"""Steps that each end of the broadcast holds for a rank that is behind."""
FAILED_LINGER_S = 1.0
"""What a rank that failed gets to send the replies that are on their way."""


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
    meeting = LocalMeeting(plan.steps, plan.rendezvous, plan.world_size)
    if run(plan, meeting, reporter, StepClock(cells), stop):
        reporter.ended()
    else:
        leave_failed()


def _settle_in(stacks: int) -> None:
    """Take the process's place: Ctrl-C is for the parent, and stacks can be asked for."""
    faulthandler.register(STACKS_SIGNAL, file=stacks, all_threads=True)
    with contextlib.suppress(PermissionError):
        os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The parent has blocked it, so that no Ctrl-C comes before it is ignored.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def leave_failed() -> NoReturn:
    """End the process; torch's threads may wait for other ranks, and hold an ordinary exit up."""
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(1)


def run(
    plan: RankPlan,
    meeting: Meeting,
    reporter: Reporter,
    clock: StepClock,
    stop: StopRequest,
) -> bool:
    """Be a rank: set it up, take steps until the last one, and close all.

    Args:
        plan: what to do.
        meeting: how the ranks find each other.
        reporter: is told how it goes.
        clock: notes the steps.
        stop: what ends rank 0, and with it the others.

    Returns:
        Whether it ended in order; else it has reported why not.
    """
    try:
        with ExitStack() as stack:
            try:
                _run(plan, meeting, reporter, clock, stop, stack)
            except BaseException as error:
                # Told first: what was opened may take long to close, or hang.
                reporter.failed(error)
                _limit_closing()
                raise
    except BaseException:
        return False
    return True


def _limit_closing() -> None:
    """Give replies that are on their way a moment, and no more."""
    timer = threading.Timer(FAILED_LINGER_S, os._exit, (1,))
    timer.daemon = True
    timer.start()


def _run(
    plan: RankPlan,
    meeting: Meeting,
    reporter: Reporter,
    clock: StepClock,
    stop: StopRequest,
    stack: ExitStack,
) -> None:
    reporter.at("importing the codecs")
    requests = load_codec(plan.requests.codec, "request_codec")
    replies = load_codec(plan.replies.codec, "reply_codec")
    reporter.at("opening the queues")
    opened = (_Other if plan.rank else _First)(plan, meeting, requests, replies, stack)
    reporter.at("importing the handler")
    cls = load_handler(plan.handler)
    device = _choose_device(plan)
    reporter.at("joining the process group")
    group = stack.enter_context(_process_group(plan, meeting))
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
    reporter.at("waiting for the other ranks")
    end, quarantine = opened.finish(plan, stop, clock)
    reporter.ready(opened.addr)
    InferenceWorker(
        handler,
        end,
        requests,
        limit=plan.max_step_messages,
        stage=choose_staging(requests, device),
        quarantine=quarantine,
        clock=clock,
        reporter=reporter,
    ).run()
    reporter.at("closing the handler")
    handler.close()


class _First:
    """What rank 0 opens."""

    def __init__(
        self,
        plan: RankPlan,
        meeting: Meeting,
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
            steps, security = meeting.bind()
            self._publisher = stack.enter_context(
                StepPublisher(
                    steps,
                    requests,
                    plan.world_size,
                    hwm=STEPS_AHEAD,
                    max_message_bytes=plan.max_step_bytes,
                    timeout=plan.step_timeout,
                    security=security,
                )
            )
            meeting.bound(self._publisher.addr)
        self._requests = stack.enter_context(
            RequestQueue(
                plan.requests.addr,
                plan.requests.create,
                requests,
                **plan.requests.options,
            )
        )
        self.addr = self._requests.addr

    def finish(
        self, plan: RankPlan, stop: StopRequest, clock: StepClock
    ) -> tuple[WorkerEnd, Quarantine]:
        others: Broadcast | NoOthers = NoOthers()
        if self._publisher is not None:
            self._publisher.wait_for_subscribers(timeout=plan.ready_timeout)
            others = Broadcast(self._publisher)

        def refuse(step: int, error: DecodeError) -> None:
            clock.refuse()
            self._quarantine.take(step, (), error)

        end = FirstRank(
            self._requests,
            self._replies,
            others,
            stop,
            plan.max_step_messages,
            refuse,
        )
        return end, self._quarantine


class _Other:
    """What any other rank opens: it subscribes once it is set up, and rank 0 waits for that."""

    addr = ""

    def __init__(
        self,
        plan: RankPlan,
        meeting: Meeting,
        requests: Codec[Any],
        replies: Codec[Any],
        stack: ExitStack,
    ) -> None:
        self._meeting = meeting
        self._codec = requests
        self._stack = stack

    def finish(
        self, plan: RankPlan, stop: StopRequest, clock: StepClock
    ) -> tuple[WorkerEnd, Quarantine]:
        steps, security = self._meeting.connect()
        subscriber = self._stack.enter_context(
            StepSubscriber(
                steps,
                self._codec,
                plan.rank,
                plan.world_size,
                hwm=STEPS_AHEAD,
                max_message_bytes=plan.max_step_bytes,
                security=security,
            )
        )
        return OtherRank(subscriber), Unnoted()


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
def _process_group(plan: RankPlan, meeting: Meeting) -> Iterator[ProcessGroup | None]:
    """Join the ranks' process group, which is torch's default group then."""
    if plan.world_size == 1:
        yield None
        return
    import torch.distributed as dist

    dist.init_process_group(
        "nccl" if plan.device == "cuda" else "gloo",
        store=meeting.store(),
        rank=plan.rank,
        world_size=plan.world_size,
    )
    yield dist.group.WORLD
    # Not after a failure, when it would wait for ranks that do not come.
    dist.destroy_process_group()

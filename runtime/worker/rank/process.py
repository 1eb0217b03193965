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
from msgen.runtime.worker.events import PipeEvents, RankEvents
from msgen.runtime.worker.handler import WorkerContext
from msgen.runtime.worker.loop import InferenceWorker
from msgen.runtime.worker.quarantine import DeadLetters, Quarantine
from msgen.runtime.worker.requests import RequestQueue
from msgen.runtime.worker.staging import choose_staging
from msgen.runtime.worker.step_io import FirstRank, OtherRank, StepIO, StopRequest

from .imports import load_codec, load_handler
from .meeting import LocalMeeting, Meeting
from .settings import RankSettings
from .watch import Watch

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

STACKS_SIGNAL = signal.SIGUSR1
"""Makes a rank write the stacks of its threads, also while it holds Python's lock."""
STEPS_AHEAD = 32
"""Steps that each end of the broadcast holds for a rank that is behind: it may take a pause (garbage
collection, page faults), while a rank that hangs is noticed soon."""
REPLY_LINGER_S = 5.0
"""Seconds that the last replies get to arrive: less than the 30 that a stop may take by default."""
FAILED_LINGER_S = 1.0
"""What a rank that failed gets to send the replies that are on their way; its pool waits for that."""


def main(
    settings: RankSettings, pipe: Connection, stacks: Connection, cells: Any
) -> None:
    """Be a rank of a pool on this machine.

    Args:
        settings: what to do.
        pipe: to the pool and back.
        stacks: where stacks are written to.
        cells: the step clock's memory.
    """
    _prepare_process(stacks.fileno())
    stop = StopRequest()
    Watch(pipe, settings.parent, stop).start()
    events = PipeEvents(pipe)
    meeting = LocalMeeting(settings.steps, settings.rendezvous, settings.world_size)
    if run(settings, meeting, events, StepClock(cells), stop):
        events.ended()
    else:
        leave_failed()


def _prepare_process(stacks: int) -> None:
    """Leave Ctrl-C to the parent, and let it ask for stacks."""
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
    settings: RankSettings,
    meeting: Meeting,
    events: RankEvents,
    clock: StepClock,
    stop: StopRequest,
) -> bool:
    """Be a rank: set it up, take steps until the last one, and close all.

    Args:
        settings: what to do.
        meeting: how the ranks find each other.
        events: takes note of what happens.
        clock: notes the steps.
        stop: what ends rank 0, and with it the others.

    Returns:
        Whether it ended in order; if not, `events` has the reason.
    """
    try:
        with ExitStack() as stack:
            try:
                _run(settings, meeting, events, clock, stop, stack)
            except BaseException as error:
                # Told first: what was opened may take long to close, or hang.
                events.failed(error)
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
    settings: RankSettings,
    meeting: Meeting,
    events: RankEvents,
    clock: StepClock,
    stop: StopRequest,
    stack: ExitStack,
) -> None:
    options = settings.options
    events.at("importing the codecs")
    requests = load_codec(options.request_codec, "request_codec")
    replies = load_codec(options.reply_codec, "reply_codec")
    events.at("opening the queues")
    # Requests that come while the handler is set up wait in rank 0's queue.
    opened = (
        None if settings.rank else _First(settings, meeting, requests, replies, stack)
    )
    events.at("importing the handler")
    cls = load_handler(options.handler)
    device = _choose_device(settings)
    events.at("joining the process group")
    group = stack.enter_context(_process_group(settings, meeting))
    events.at("setting the handler up")
    handler_options = dict(options.options or {})
    handler = cls(**handler_options)
    handler.setup(
        WorkerContext(
            settings.rank,
            settings.world_size,
            settings.local_rank,
            device,
            group,
            handler_options,
            stop.stop,
        )
    )
    events.at("waiting for the other ranks")
    io: StepIO
    if opened is not None:
        io = opened.io(stop, clock)
        events.ready(opened.addr)
    else:
        # Rank 0 waits for that, so it comes last.
        io = OtherRank(_subscribe(settings, meeting, requests, stack))
        events.ready("")
    InferenceWorker(
        handler,
        io,
        requests,
        limit=options.max_step_messages,
        stage=choose_staging(requests, device),
        quarantine=None if opened is None else opened.quarantine,
        clock=clock,
        events=events,
    ).run()
    events.at("closing the handler")
    handler.close()


class _First:
    """What rank 0 opens.

    Attributes:
        addr: where requests go.
        quarantine: where messages go that are not valid.
    """

    def __init__(
        self,
        settings: RankSettings,
        meeting: Meeting,
        requests: Codec[Any],
        replies: Codec[Any],
        stack: ExitStack,
    ) -> None:
        options = self._options = settings.options
        letters = None
        if options.dead_letters is not None:
            letters = DeadLetters(options.dead_letters, options.dead_letter_bytes)
            stack.callback(letters.close)
        self.quarantine = Quarantine(letters)
        # Closed last: replies that are on their way get the time they need.
        self._replies = stack.enter_context(
            ZmqPushQueue(
                options.replies,
                options.bind_replies,
                replies,
                timeout=options.reply_timeout,
                hwm=options.hwm,
                max_message_bytes=options.max_message_bytes,
                security=options.replies_security,
                linger=REPLY_LINGER_S,
            )
        )
        self._publisher = None
        if settings.world_size > 1:
            steps, security = meeting.bind()
            self._publisher = stack.enter_context(
                StepPublisher(
                    steps,
                    requests,
                    settings.world_size,
                    hwm=STEPS_AHEAD,
                    max_message_bytes=options.max_step_bytes,
                    timeout=options.step_timeout,
                    security=security,
                )
            )
            meeting.bound(self._publisher.addr)
        self._requests = stack.enter_context(
            RequestQueue(
                settings.requests,
                True,
                requests,
                hwm=options.hwm,
                max_message_bytes=options.max_message_bytes,
                security=options.requests_security,
            )
        )
        self.addr = self._requests.addr

    def io(self, stop: StopRequest, clock: StepClock) -> FirstRank:
        """Wait for the other ranks, and return what the loop reads and writes."""
        if self._publisher is not None:
            self._publisher.wait_for_subscribers(timeout=self._options.ready_timeout)

        def refuse(step: int, error: DecodeError) -> None:
            clock.refuse()
            self.quarantine.take(step, (), error)

        return FirstRank(
            self._requests,
            self._replies,
            self._publisher,
            stop,
            self._options.max_step_messages,
            refuse,
        )


def _subscribe(
    settings: RankSettings, meeting: Meeting, requests: Codec[Any], stack: ExitStack
) -> StepSubscriber[Any]:
    steps, security = meeting.connect()
    return stack.enter_context(
        StepSubscriber(
            steps,
            requests,
            settings.rank,
            settings.world_size,
            hwm=STEPS_AHEAD,
            max_message_bytes=settings.options.max_step_bytes,
            security=security,
        )
    )


def _choose_device(settings: RankSettings) -> torch.device:
    """Return the rank's device, and make it the current one.

    Raises:
        RuntimeError: the machine has no such device.
    """
    if settings.options.device == "cpu":
        if "OMP_NUM_THREADS" not in os.environ:
            # Ranks that each start a thread per core get in each other's way.
            torch.set_num_threads(max(1, (os.cpu_count() or 1) // settings.world_size))
        return torch.device("cpu")
    count = torch.cuda.device_count()
    if settings.local_rank >= count:
        raise RuntimeError(
            f"device 'cuda': local rank {settings.local_rank} needs cuda:{settings.local_rank}, this machine "
            f"has {count} such devices; start fewer ranks, or use device='cpu'"
        )
    device = torch.device("cuda", settings.local_rank)
    torch.cuda.set_device(device)
    return device


@contextmanager
def _process_group(
    settings: RankSettings, meeting: Meeting
) -> Iterator[ProcessGroup | None]:
    """Join the ranks' process group, which is torch's default group then."""
    if settings.world_size == 1:
        yield None
        return
    import torch.distributed as dist

    dist.init_process_group(
        "nccl" if settings.options.device == "cuda" else "gloo",
        store=meeting.store(),
        rank=settings.rank,
        world_size=settings.world_size,
    )
    yield dist.group.WORLD
    # Not after a failure, when it would wait for ranks that do not come.
    dist.destroy_process_group()

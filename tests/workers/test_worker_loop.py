"""The worker's loop, rank 0's and another rank's, in one process over real queues."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from children import user
from handlers import Answering, Echo, NoReplies, Troubled, token
from msgen.generated import backend, tokenizer
from msgen.runtime import DecodeError
from msgen.runtime.broadcast import StepPublisher, StepSubscriber
from msgen.runtime.codec import wire
from msgen.runtime.queues import ZmqPullQueue, ZmqPushQueue
from msgen.runtime.worker import InferenceHandler, InferenceWorker, WorkerContext
from msgen.runtime.worker.clock import CELLS, StepClock
from msgen.runtime.worker.events import PipeEvents, StepFailed
from msgen.runtime.worker.quarantine import DeadLetters, Quarantine, read_dead_letters
from msgen.runtime.worker.rank.imports import load, load_codec, load_handler
from msgen.runtime.worker.requests import PING, RequestQueue
from msgen.runtime.worker.step_io import (
    FirstRank,
    OtherRank,
    StepIO,
    StopRequest,
)
from processes import GENEROUS, until


class Seen(Quarantine):
    """Keeps what a rank's loop tells, as events and as quarantine."""

    def __init__(self) -> None:
        self.pongs: list[bytes] = []
        self.answers: list[tuple[int, str]] = []
        self.bad: list[tuple[int, int]] = []

    def at(self, what: str) -> None:
        raise AssertionError

    def ready(self, addr: str) -> None:
        raise AssertionError

    def pong(self, token: bytes) -> None:
        self.pongs.append(token)

    def answered(self, number: int, error: Exception) -> None:
        self.answers.append((number, str(error)))

    def failed(self, error: BaseException) -> None:
        raise AssertionError

    def ended(self) -> None:
        raise AssertionError

    def take(self, step: int, frames: Sequence[Any], error: DecodeError) -> None:
        self.bad.append((step, len(frames)))


class Recorder(Echo):
    """Keeps each call's messages."""

    def __init__(self) -> None:
        self.calls: list[list[Any]] = []
        self.left = 2

    def step(self, messages: list[Any]) -> list[Any]:
        self.calls.append(messages)
        self.left -= not messages
        return [token(message.uid) for message in messages]

    @property
    def busy(self) -> bool:
        return self.left > 0


class Ends:
    """Rank 0's queues, its clients', and rank 1's end of the broadcast."""

    def __init__(self, folder: Path, stack: ExitStack, *, limit: int = 4) -> None:
        requests, replies = f"ipc://{folder}/requests", f"ipc://{folder}/replies"
        steps = f"ipc://{folder}/steps"
        enter = stack.enter_context
        self.pull = enter(
            ZmqPullQueue(replies, True, tokenizer.CODEC, timeout=GENEROUS)
        )
        self.requests = enter(
            RequestQueue(requests, True, backend.CODEC, max_message_bytes=1_000_000)
        )
        self.push = enter(ZmqPushQueue(requests, False, backend.CODEC))
        self.replies = enter(ZmqPushQueue(replies, False, tokenizer.CODEC))
        self.publisher = enter(StepPublisher(steps, backend.CODEC, 2))
        self.subscriber = enter(StepSubscriber(steps, backend.CODEC, 1, 2))
        self.publisher.wait_for_subscribers(timeout=GENEROUS)
        self.stop = StopRequest()
        self.limit = limit

    def first(self, refused: Seen, *, alone: bool = False) -> FirstRank:
        return FirstRank(
            self.requests,
            self.replies,
            None if alone else self.publisher,
            self.stop,
            self.limit,
            lambda step, error: refused.take(step, (), error),
        )


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[Ends]:
    with ExitStack() as stack:
        yield Ends(tmp_path, stack)


def make_worker(
    handler: InferenceHandler, io: StepIO, seen: Seen
) -> tuple[InferenceWorker, StepClock]:
    clock = StepClock(bytearray(8 * CELLS))
    worker = InferenceWorker(
        handler,
        io,
        backend.CODEC,
        limit=4,
        stage=lambda messages: None,
        quarantine=seen,
        clock=clock,
        events=seen,
    )
    return worker, clock


def arrived(ends: Ends, count: int) -> None:
    """Wait until so much that was put is with rank 0's process, which is this one."""
    assert ends.push.drain(GENEROUS)
    until(lambda: not ends.requests.empty())


def test_both_ranks_do_the_same_from_the_same_bytes(ends: Ends) -> None:
    ends.push.put_many([backend.AbortBackendMsg(uid) for uid in range(6)])
    ends.push.put_raw(b"junk")
    ends.push.put(user(7, 100_000))
    ends.push.put_raw(PING + b"token")
    ends.push.put_raw([b"head", bytes(600_000), bytes(600_000)])
    ends.push.put(backend.AbortBackendMsg(8))
    arrived(ends, 6)
    ends.stop.drain()
    handlers, seen, clocks = [Recorder(), Recorder()], [Seen(), Seen()], []
    both: list[StepIO] = [ends.first(seen[0]), OtherRank(ends.subscriber)]
    for handler, end, each in zip(handlers, both, seen):
        worker, clock = make_worker(handler, end, each)
        worker.run()
        clocks.append(clock.stats(0))
    assert handlers[0].calls == handlers[1].calls
    calls = handlers[0].calls
    assert [message.uid for call in calls for message in call] == [*range(6), 7, 8]
    assert max(map(len, calls)) <= 4
    assert calls.count([]) == 2  # It was busy twice more.
    assert seen[0].pongs == seen[1].pongs == [b"token"]
    assert [size for _, size in seen[1].bad] == [1]
    assert sorted(size for _, size in seen[0].bad) == [0, 1]
    assert clocks[0] == clocks[1]
    assert (clocks[0].messages, clocks[0].bad_messages) == (8, 1)
    replies: list[Any] = []
    while len(replies) < 8:
        replies += ends.pull.get_many(8)
    assert [reply.uid for reply in replies] == [*range(6), 7, 8]


def test_a_stop_at_once_ends_after_a_step(ends: Ends) -> None:
    ends.stop.stop()
    handler = Recorder()
    make_worker(handler, ends.first(Seen(), alone=True), Seen())[0].run()
    assert handler.calls == [[]]


@pytest.mark.parametrize(
    ("handler", "cause", "text"),
    [
        (Troubled("fail"), ValueError, "number 13 is bad"),
        (Troubled("exit"), SystemExit, "3"),
        (
            NoReplies(),
            TypeError,
            "step returned a NoneType, expected a list of replies",
        ),
        (
            Troubled("answer_wrongly"),
            Exception,
            "DetokenizeMsg.next_token: expected int",
        ),
    ],
)
def test_what_nobody_answers_ends_the_loop(
    ends: Ends, handler: InferenceHandler, cause: type[Exception], text: str
) -> None:
    ends.push.put(backend.AbortBackendMsg(13))
    arrived(ends, 1)
    handler.setup(CONTEXT)
    worker, _ = make_worker(handler, ends.first(Seen(), alone=True), Seen())
    with pytest.raises(StepFailed) as caught:
        worker.run()
    assert caught.value.number == 0
    assert [bytes(frames[0]) for frames in caught.value.frames] == [  # type: ignore[arg-type]
        backend.encode(backend.AbortBackendMsg(13))
    ]
    assert isinstance(caught.value.__cause__, cause)
    assert str(caught.value.__cause__).startswith(text)


def test_what_is_answered_is_told_and_the_loop_goes_on(ends: Ends) -> None:
    ends.push.put(backend.AbortBackendMsg(13))
    arrived(ends, 1)
    ends.stop.drain()
    handler, seen = Answering("fail"), Seen()
    handler.setup(CONTEXT)
    make_worker(handler, ends.first(seen, alone=True), seen)[0].run()
    assert seen.answers == [(0, "number 13 is bad")]
    assert ends.pull.get().text == "sorry: number 13 is bad"  # type: ignore[union-attr]


CONTEXT: Any = WorkerContext(0, 1, 0, "cpu", None, {}, lambda: None)  # type: ignore[arg-type]


def test_reports_are_plain_msgpack_of_bounded_size() -> None:
    ours, theirs = multiprocessing.Pipe()
    events = PipeEvents(theirs)
    try:
        raise ValueError("\ud800 is no text")
    except ValueError as error:
        failed = StepFailed(3, [[b"a", b"b"], [bytes(2 << 20)]])
        failed.__cause__ = error
        events.failed(failed)
    kind, name, text, trace, step, frames = wire.unpack(ours.recv_bytes())
    assert (kind, name, text) == ("failed", "ValueError", r"\ud800 is no text")
    assert "in test_reports_are_plain" in trace
    assert (step, frames) == (3, [[b"a", b"b"]])
    events.at("x" * 10)
    events.ready("ipc:///x")
    events.pong(b"t")
    events.answered(1, Unspeakable())
    events.ended()
    told = [wire.unpack(ours.recv_bytes()) for _ in range(5)]
    assert told[3][:2] == ["answered", 1]
    assert told[3][3] == "(its text cannot be had)"
    assert told[4] == ["ended"]
    ours.close()
    events.ended()  # The pool is gone; that is not for a report to tell.


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError


def test_names_are_imported_and_checked() -> None:
    assert load_handler("handlers:Echo") is Echo
    assert load_codec("msgen.generated.backend:CODEC", "codec") is backend.CODEC
    assert load("os:path.join", "it")("a", "b") == "a/b"
    with pytest.raises(ValueError, match="it: module 'os' has no 'nothing'"):
        load("os:nothing", "it")
    with pytest.raises(ValueError, match=r"expected 'package\.module:name', got 'os'"):
        load("os", "it")
    with pytest.raises(ValueError, match="is not a class derived from"):
        load_handler("handlers:NoHandler")


def test_rank_0_logs_what_it_leaves_out_and_keeps_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    letters = DeadLetters(tmp_path / "letters", 10_000)
    Quarantine(letters).take(
        7, [b"x", memoryview(b"y")], DecodeError("backend", "is bad")
    )
    letters.close()
    assert "step 7: a request was left out" in caplog.text
    assert "DecodeError: backend: is bad" in caplog.text
    (letter,) = read_dead_letters(tmp_path / "letters")
    assert (letter.step, letter.error, letter.frames) == (
        7,
        "DecodeError",
        [b"x", b"y"],
    )

"""Steps from a publisher to its ranks: who must be there, and what happens when one is not."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq
from children import (
    digest_steps,
    follow_and_stop_taking,
    follow_steps,
    publish_steps_for_ever,
    user,
)
from msgen.generated import backend
from msgen.runtime import (
    BroadcastError,
    EncodeError,
    MessageTooLarge,
    MsgenError,
    PublisherLost,
    QueueClosed,
    QueueEmpty,
    QueueFull,
    RankLost,
    RankRefused,
    RankStalled,
    SchemaMismatch,
    StepDecodeError,
    StepGap,
    SubscribersMissing,
)
from msgen.runtime.broadcast import StepPublisher, StepSubscriber
from msgen.runtime.broadcast.steps import STEP, WHO, pack_head
from msgen.runtime.queues import ZmqPullQueue, ZmqPushQueue
from msgen.runtime.queues.frames import plain_frames
from processes import CONTEXT, GENEROUS, answer, finished, running, until
from sizes import size

ROUNDS = size("MSGEN_ROUNDS", 12, 300)


def publisher(addr: str, world_size: int = 2, **options: Any) -> StepPublisher[Any]:
    return StepPublisher(addr, backend.CODEC, world_size, **options)


def subscriber(
    addr: str, rank: int = 1, world_size: int = 2, **options: Any
) -> StepSubscriber[Any]:
    return StepSubscriber(addr, backend.CODEC, rank, world_size, **options)


@pytest.fixture
def pair(addr: str) -> Iterator[tuple[StepPublisher[Any], StepSubscriber[Any]]]:
    with publisher(addr) as pub, subscriber(addr) as sub:
        pub.wait_for_subscribers(timeout=GENEROUS)
        yield pub, sub


def test_a_step_is_the_same_list_of_messages_on_every_rank(addr: str) -> None:
    steps: list[list[Any]] = [
        [],
        [user(1, 3)],
        [user(1, 50_000), backend.ExitMsg(), user(2, 0), user(3, 20_000)],
        [backend.BatchBackendMsg([user(1, 20_000), user(2, 20_000)])],
        [backend.AbortBackendMsg(uid) for uid in range(200)],
    ]
    with (
        publisher(addr, 3) as pub,
        subscriber(addr, 1, 3) as one,
        subscriber(addr, 2, 3) as two,
    ):
        pub.wait_for_subscribers(timeout=GENEROUS)
        for number, msgs in enumerate(steps):
            raw = pub.put(msgs)
            assert raw.number == number
            assert pub.decode(raw) == msgs
            assert one.get(GENEROUS) == two.get(GENEROUS) == msgs
        assert one.empty()
        assert one.stats.messages == two.stats.messages == pub.stats.messages == 5
        assert one.stats.bytes == pub.stats.bytes


def test_raw_frames_are_passed_on_as_they_came(
    addr: str, tmp_path: Path, pair: tuple[StepPublisher[Any], StepSubscriber[Any]]
) -> None:
    pub, sub = pair
    msgs: list[Any] = [user(1, 3), user(2, 50_000), backend.ExitMsg()]
    with (
        ZmqPullQueue(f"{addr}2", create=True, codec=backend.CODEC) as pull,
        ZmqPushQueue(f"{addr}2", create=False, codec=backend.CODEC) as push,
    ):
        for msg in msgs:
            push.put(msg)
        received = [pull.get_raw(GENEROUS) for _ in msgs]
        step = pub.put_raw([*received, backend.encode(backend.ExitMsg())])
        raw = sub.get_raw(GENEROUS)
        assert [plain_frames(frames) for frames in raw.messages] == [
            *([bytes(frame) for frame in backend.encode_frames(msg)] for msg in msgs),
            [backend.encode(backend.ExitMsg())],
        ]
        assert sub.decode(raw) == pub.decode(step) == [*msgs, backend.ExitMsg()]


def test_nothing_is_sent_before_every_rank_is_there(addr: str) -> None:
    with publisher(addr, 4) as pub:
        with pytest.raises(SubscribersMissing, match="call wait_for_subscribers first"):
            pub.put([])
        with subscriber(addr, 2, 4) as two:
            until(lambda: pub.ranks)
            with pytest.raises(SubscribersMissing) as caught:
                pub.wait_for_subscribers(timeout=0.05)
            assert caught.value.ranks == (1, 3)
            assert str(caught.value) == (
                "ranks 1, 3 have not subscribed, of ranks 1 to 3 within 0.05 s"
            )
            with pytest.raises(SubscribersMissing):
                pub.put_raw([b"x"])
            with subscriber(addr, 1, 4), subscriber(addr, 3, 4):
                pub.wait_for_subscribers(timeout=GENEROUS)
                assert pub.put([]).number == 0
                assert two.get(GENEROUS) == []


def test_some_ranks_may_be_waited_for_first(addr: str) -> None:
    with publisher(addr, 3) as pub, subscriber(addr, 1, 3):
        pub.wait_for_subscribers(0, timeout=0)
        pub.wait_for_subscribers(1, timeout=GENEROUS)
        with pytest.raises(SubscribersMissing, match="rank 2 has not subscribed"):
            pub.put([])
        with pytest.raises(ValueError, match="n: expected 0 to 2 subscribers, got 3"):
            pub.wait_for_subscribers(3)


def test_a_rank_that_left_early_is_told_apart(addr: str) -> None:
    with publisher(addr, 3) as pub, subscriber(addr, 1, 3):
        with subscriber(addr, 2, 3):
            until(lambda: len(pub.ranks) == 2)
        until(lambda: len(pub.ranks) == 1)
        with pytest.raises(
            SubscribersMissing, match=r"\(2 had subscribed, and left be"
        ):
            pub.wait_for_subscribers(timeout=0.05)
        with subscriber(addr, 2, 3):
            pub.wait_for_subscribers(timeout=GENEROUS)


def test_alone_there_is_nobody_to_wait_for(addr: str) -> None:
    with publisher(addr, 1) as pub:
        pub.wait_for_subscribers(timeout=0)
        assert pub.put([user(1, 3)]).number == 0
        assert pub.ranks == []


def test_slow_joiners_lose_nothing(addr: str) -> None:
    """Subscribers come up to some time after the publisher, in any order, again and again."""
    chance = random.Random(11)
    # A process takes long to start; a round's point is the order, so the delays differ in scale.
    for number in range(ROUNDS):
        where = f"{addr}{number}"
        late = [chance.random() * chance.choice([0.0, 0.01, 0.1]) for _ in range(2)]
        if number % 25 == 0:
            late[0] = 2 * chance.random()
        pipes = [CONTEXT.Pipe() for _ in late]
        with (
            publisher(where, 3, timeout=GENEROUS) as pub,
            running(digest_steps, where, 1, 3, 20, pipes[0][1], {"late": late[0]}),
            running(digest_steps, where, 2, 3, 20, pipes[1][1], {"late": late[1]}),
        ):
            pub.wait_for_subscribers()
            for step in range(20):
                pub.put([backend.AbortBackendMsg(step)])
            digests = []
            for mine, _ in pipes:
                assert mine.poll(GENEROUS)
                digests.append(answer(mine))
            assert digests[0] == digests[1]


def complete(pub: StepPublisher[Any]) -> bool:
    """Say whether all ranks are there, and one that was refused is gone."""
    try:
        pub.wait_for_subscribers(timeout=0)
    except MsgenError:
        return False
    return True


def test_another_schema_is_named_with_its_rank(addr: str) -> None:
    mine, theirs = CONTEXT.Pipe()
    other = "ab" * 32
    with publisher(addr, 3) as pub, subscriber(addr, 1, 3):
        with running(follow_steps, addr, 2, 3, other, theirs) as process:
            with pytest.raises(SchemaMismatch) as caught:
                pub.wait_for_subscribers(timeout=GENEROUS)
            assert caught.value.path == "rank 2"
            assert (caught.value.ours, caught.value.theirs) == (
                backend.CODEC.fingerprint,
                other,
            )
            assert other in str(caught.value)
            assert backend.CODEC.fingerprint in str(caught.value)
            with pytest.raises(SchemaMismatch):
                pub.put([])
            process.kill()
        del mine
        with subscriber(addr, 2, 3):
            until(lambda: complete(pub))


@pytest.mark.parametrize(
    ("rank", "world_size", "text"),
    [
        (2, 5, "rank 2 announced a world size of 5, this publisher has 3"),
        (1, 3, "rank 1 was announced by two processes"),
    ],
)
def test_a_rank_that_does_not_fit_is_refused(
    addr: str, rank: int, world_size: int, text: str
) -> None:
    with (
        publisher(addr, 3) as pub,
        subscriber(addr, 1, 3),
    ):
        until(lambda: pub.ranks)
        with subscriber(addr, rank, world_size):
            with pytest.raises(RankRefused, match=text) as caught:
                pub.wait_for_subscribers(timeout=GENEROUS)
            assert caught.value.rank == rank
        with subscriber(addr, 2, 3):
            until(lambda: complete(pub))


def test_ranks_out_of_range_are_the_callers_mistake(addr: str) -> None:
    for rank in (0, 2, -1):
        with pytest.raises(ValueError, match="rank: expected 1 to 1 of a world of 2"):
            subscriber(addr, rank)
    with pytest.raises(ValueError, match="world_size: expected 1 or more, got 0"):
        publisher(addr, 0)


def test_what_is_no_announcement_is_ignored(addr: str) -> None:
    with (
        publisher(addr) as pub,
        zmq.Context() as context,
        context.socket(zmq.XSUB) as raw,
    ):
        raw.linger = 0
        raw.connect(addr)
        for junk in (b"\1", b"\1x", b"\1" + WHO + b"\xc1", b"\1" + WHO + b"\x91\1"):
            raw.send(junk)
        raw.send(b"\1" + WHO + b"\x95\xa1x\2\xa1x\xa1x\xc4\0")
        for junk in (b"junk", b"", b"msgtook\1", b"msgtook\1\x92\1\xa1x", b"\2" * 100):
            raw.send(junk)
        with pytest.raises(SubscribersMissing):
            pub.wait_for_subscribers(timeout=0.2)
        with subscriber(addr) as sub:
            pub.wait_for_subscribers(timeout=GENEROUS)
            pub.put([user(1, 1)])
            assert sub.get(GENEROUS) == [user(1, 1)]


def test_a_killed_rank_is_named_and_blocks_nobody(addr: str) -> None:
    pipes = [CONTEXT.Pipe() for _ in range(2)]
    with (
        publisher(addr, 3, hwm=4, timeout=GENEROUS) as pub,
        running(follow_steps, addr, 1, 3, None, pipes[0][1]) as one,
        running(follow_and_stop_taking, addr, 2, 3, pipes[1][1]) as two,
    ):
        pub.wait_for_subscribers()
        for number in range(10):
            pub.put([backend.AbortBackendMsg(number)])
        assert pipes[1][0].poll(GENEROUS)
        with pytest.raises(RankStalled):
            while True:
                pub.put([user(1, 10_000)], timeout=0.2)
        # The publisher waits for rank 2, which is killed meanwhile.
        assert two.pid is not None
        os.kill(two.pid, signal.SIGKILL)
        with pytest.raises(RankLost, match="rank 2 is gone") as caught:
            while True:
                pub.put([user(1, 10_000)])
        assert caught.value.rank == 2
        with pytest.raises(RankLost):
            pub.put([])
        with pytest.raises(RankLost):
            pub.check()
        assert [state.rank for state in pub.ranks] == [1]
        assert one.is_alive()


def test_a_rank_that_takes_nothing_is_named_and_may_recover(addr: str) -> None:
    pipes = [CONTEXT.Pipe() for _ in range(2)]
    with (
        publisher(addr, 3, hwm=8, timeout=GENEROUS) as pub,
        running(follow_steps, addr, 1, 3, None, pipes[0][1]),
        running(follow_and_stop_taking, addr, 2, 3, pipes[1][1]),
    ):
        pub.wait_for_subscribers()
        for number in range(10):
            pub.put([backend.AbortBackendMsg(number)])
        assert pipes[1][0].poll(GENEROUS)
        sent = 10
        with pytest.raises(
            RankStalled, match="rank 2 is connected, has taken"
        ) as caught:
            while True:
                pub.put([user(1, 10_000)], timeout=0.5)
                sent += 1
        assert caught.value.ranks == (2,)
        assert isinstance(caught.value, QueueFull)
        assert f"step {sent} could not be sent within 0.5 s" in str(caught.value)
        pipes[1][0].send("go on")
        # The step that was refused has been sent to nobody, so it goes to all now.
        assert pub.put([user(1, 10_000)]).number == sent


def test_a_publisher_that_goes_is_noticed_after_its_last_step(addr: str) -> None:
    mine, theirs = CONTEXT.Pipe()
    with running(follow_steps, addr, 1, 2, None, theirs) as process:
        with publisher(addr, 2, timeout=GENEROUS) as pub:
            pub.wait_for_subscribers()
            for number in range(50):
                pub.put([user(number, 20_000)])
        assert answer(mine) == "following"
        taken, name, text = answer(mine)
        assert (taken, name) == (50, PublisherLost.__name__)
        assert "this rank took 50 steps" in text
        finished(process)


def test_a_killed_publisher_is_noticed(addr: str) -> None:
    mine, theirs = CONTEXT.Pipe()
    with (
        running(publish_steps_for_ever, addr, 2, theirs) as process,
        subscriber(addr) as sub,
    ):
        for number in range(30):
            assert sub.get(GENEROUS) == [user(number, 3), user(number, 20_000)]
        assert answer(mine) == process.pid
        process.kill()
        with pytest.raises(PublisherLost):
            while True:
                sub.get(GENEROUS)
        with pytest.raises(PublisherLost):
            sub.get(timeout=0)


def test_a_publisher_that_was_started_anew_is_another_one(addr: str) -> None:
    with subscriber(addr, timeout=GENEROUS) as sub:
        with publisher(addr) as first:
            first.wait_for_subscribers(timeout=GENEROUS)
            first.put([])
            assert sub.get() == []
        with pytest.raises(PublisherLost):
            sub.get()
    with (
        subscriber(addr, first_step=None, timeout=GENEROUS) as late,
        publisher(addr) as second,
    ):
        second.wait_for_subscribers(timeout=GENEROUS)
        second.put([])
        assert late.get() == []
        late._publisher = 1  # as though the first step had come from another one
        second.put([])
        with pytest.raises(StepGap, match="comes step 1 of another publisher"):
            late.get()


def bare_steps(addr: str, frames: list[list[bytes]]) -> list[BaseException | Any]:
    """Send steps from a bare socket, and return what a subscriber makes of each."""
    with (
        zmq.Context() as context,
        context.socket(zmq.XPUB) as bare,
    ):
        bare.linger = 0
        bare.bind(addr)
        outcomes: list[Any] = []
        with subscriber(addr, timeout=0.5) as sub:
            for _ in range(2):
                assert bare.poll(int(GENEROUS * 1000))
                bare.recv()
            for step in frames:
                bare.send_multipart(step)
                try:
                    outcomes.append(sub.get(GENEROUS))
                except Exception as error:
                    outcomes.append(error)
        return outcomes


EXIT = backend.encode(backend.ExitMsg())


def test_a_missing_step_is_a_gap_for_good(addr: str) -> None:
    good = [pack_head(7, number, [1]) for number in range(5)]
    outcomes = bare_steps(
        addr, [[good[0], EXIT], [good[1], EXIT], [good[3], EXIT], [good[2], EXIT]]
    )
    assert outcomes[:2] == [[backend.ExitMsg()]] * 2
    gap, again = outcomes[2:]
    assert isinstance(gap, StepGap)
    assert (gap.expected, gap.got) == (2, 3)
    assert again is gap


def test_a_rank_that_missed_the_first_step_is_out_of_step(addr: str) -> None:
    (gap,) = bare_steps(addr, [[pack_head(7, 17, []), b""][:1]])
    assert isinstance(gap, StepGap)
    assert (gap.expected, gap.got) == (0, 17)


@pytest.mark.parametrize(
    "step",
    [
        [STEP],
        [STEP + b"\xc1"],
        [STEP + b"junk", EXIT],
        [STEP + b"\x93\1\2\3"],
        [STEP + b"\x93\1\0\x91\0"],
        [STEP + b"\x93\1\0\x91\xa1x", EXIT],
        [STEP + b"\x93\1\0\x91\xce\xff\xff\xff\xff", EXIT],
        [STEP + b"\xdd\xff\xff\xff\xff"],
        [pack_head(7, 0, [1])],
        [pack_head(7, 0, [2]), EXIT],
        [pack_head(7, 0, [1, 1]), EXIT],
        [pack_head(7, 0, [1]), EXIT, EXIT],
        [pack_head(7, 0, []), EXIT],
        [pack_head(7, 0, [1]) + b"x", EXIT],
    ],
)
def test_what_is_no_step_is_an_error(addr: str, step: list[bytes]) -> None:
    (error,) = bare_steps(addr, [step])
    assert isinstance(error, BroadcastError)


def test_bad_messages_cost_only_themselves(
    pair: tuple[StepPublisher[Any], StepSubscriber[Any]],
) -> None:
    pub, sub = pair
    step = pub.put_raw([EXIT, b"junk", EXIT, [b"\x91\0", b"frame"]])
    errors = []
    for rank in (pub, sub):
        with pytest.raises(StepDecodeError) as caught:
            rank.decode(step if rank is pub else sub.get_raw(GENEROUS))
        errors.append(caught.value)
        assert rank.stats.decode_errors == 2
    for error in errors:
        assert error.step == 0
        assert error.messages == [backend.ExitMsg()] * 2
        assert [index for index, _, _ in error.bad] == [1, 3]
        assert str(error).startswith("step 0, message 1: ")
        assert "(2 of 4 messages are not valid)" in str(error)
    pub.put([backend.ExitMsg()])
    assert sub.get(GENEROUS) == [backend.ExitMsg()]


def test_mistakes_of_the_publisher_send_nothing(
    pair: tuple[StepPublisher[Any], StepSubscriber[Any]],
) -> None:
    pub, sub = pair
    with pytest.raises(EncodeError):
        pub.put([backend.ExitMsg(), backend.AbortBackendMsg("x")])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected the frames of a message, got none"):
        pub.put_raw([[]])
    pub._max_message_bytes = 1_000
    with pytest.raises(MessageTooLarge):
        pub.put([user(1, 1_000)])
    assert pub.put([]).number == 0
    assert sub.get(GENEROUS) == []


def test_waiting_for_a_step_ends(
    pair: tuple[StepPublisher[Any], StepSubscriber[Any]],
) -> None:
    pub, sub = pair
    assert sub.empty()
    with pytest.raises(QueueEmpty, match=r"no step came within 0\.01 s; rank 1 took 0"):
        sub.get(timeout=0.01)
    for end in (pub, sub):
        end.stop()
        end.stop()
    with pytest.raises(QueueClosed):
        sub.get()
    with pytest.raises(QueueClosed):
        pub.put([])


def test_ranks_tell_how_far_they_are(addr: str) -> None:
    with publisher(addr, hwm=8) as pub, subscriber(addr, hwm=8) as sub:
        pub.wait_for_subscribers(timeout=GENEROUS)
        for _ in range(100):
            pub.put([], timeout=GENEROUS)
            sub.get(GENEROUS)
        until(lambda: pub.ranks[0].taken == 100)


def test_progress_is_no_trouble_if_nobody_reads_it(addr: str) -> None:
    """Far more reports than ZeroMQ holds, none of them read: the publisher's turn never comes."""
    with publisher(addr, hwm=1) as pub, subscriber(addr, hwm=1) as sub:
        pub.wait_for_subscribers(timeout=GENEROUS)
        pub.put([])
        sub.get(GENEROUS)
        for _ in range(5_000):
            sub._report()
        pub.put([], timeout=GENEROUS)
        assert sub.get(GENEROUS) == []

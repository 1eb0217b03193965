"""Faults that were found in the transport, each as a test of its kind."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
import zmq
from children import user
from msgen.generated import backend, tokenizer
from msgen.runtime import (
    DecodeError,
    PublisherLost,
    QueueClosed,
    RankLost,
    SecurityError,
    WrongProcess,
)
from msgen.runtime.broadcast import StepPublisher, StepSubscriber
from msgen.runtime.broadcast.roster import Roster
from msgen.runtime.broadcast.steps import STEP, Announcement
from msgen.runtime.queues import (
    ZmqAsyncPullQueue,
    ZmqAsyncPushQueue,
    ZmqPubQueue,
    ZmqPullQueue,
    ZmqPushQueue,
)
from msgen.runtime.sockets import Curve, make_keys
from processes import GENEROUS, until


@pytest.mark.parametrize("bad", ["text", 7, None, memoryview(b"abcd")[::2]])
@pytest.mark.parametrize("copy", [True, False])
def test_a_frame_that_is_none_leaves_no_half_message(
    addr: str, bad: Any, copy: bool
) -> None:
    with (
        ZmqPullQueue(addr, create=True, codec=backend.CODEC) as pull,
        ZmqPushQueue(addr, create=False, codec=backend.CODEC, copy=copy) as push,
    ):
        with pytest.raises(TypeError, match="expected a frame of contiguous bytes"):
            push.put_raw([b"head", bad])
        push.put(backend.ExitMsg())
        assert pull.get(GENEROUS) == backend.ExitMsg()


def test_a_forked_child_cannot_publish(addr: str) -> None:
    with ZmqPubQueue(addr, create=True, codec=tokenizer.CODEC) as pub:
        child = os.fork()
        if child == 0:
            try:
                pub.put(tokenizer.AbortMsg(1))
            except WrongProcess:
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_linger_that_makes_no_sense_leaves_the_queue_open(addr: str) -> None:
    with ZmqPushQueue(addr, create=True, codec=backend.CODEC) as push:
        for linger in (float("inf"), -1):
            with pytest.raises(ValueError, match="linger: expected 0 or more seconds"):
                push.stop(linger=linger)
        assert push.stats.messages == 0


def test_an_interrupted_stop_closes_all_the_same(
    addr: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    push = ZmqPushQueue(addr, create=True, codec=backend.CODEC)
    inner = push._socket
    assert inner is not None
    monkeypatch.setattr(push, "_before_closing", interrupted)
    with pytest.raises(KeyboardInterrupt):
        push.stop()
    assert inner.closed
    assert not Path(addr.removeprefix("ipc://")).exists()
    monkeypatch.undo()
    outflow = push._outflow
    assert outflow is not None
    outflow.close()


@pytest.mark.parametrize("rounds", [30])
def test_a_publisher_that_sends_a_last_step_and_goes_is_missed_by_nobody(
    addr: str, rounds: int
) -> None:
    """The end may be noticed together with the last step, and counts after it."""
    for _ in range(rounds):
        with StepSubscriber(addr, backend.CODEC, 1, 2) as sub:
            with StepPublisher(addr, backend.CODEC, 2) as pub:
                pub.wait_for_subscribers(timeout=GENEROUS)
                pub.put([backend.ExitMsg()])
            assert sub.get(GENEROUS) == [backend.ExitMsg()]
            with pytest.raises(PublisherLost):
                sub.get(GENEROUS)


def test_without_a_handshake_nothing_has_arrived(addr: str) -> None:
    """Something listens there, and says nothing."""
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(addr.removeprefix("ipc://"))
        mute.listen()
        with ZmqPushQueue(addr, create=False, codec=backend.CODEC, linger=0) as push:
            assert push.drain(timeout=0) is True  # of nothing
            push.put(backend.ExitMsg())
            connection, _ = mute.accept()
            with connection:
                assert push.drain(timeout=0.3) is False


def test_a_refused_sender_says_what_it_drops(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It has put a message before there is anyone who could refuse it."""
    public, secret = make_keys(tmp_path, "server")
    nobody = Curve.server(secret, clients=[])
    with ZmqPullQueue(
        "tcp://127.0.0.1:0", create=True, codec=backend.CODEC, security=nobody
    ) as first:
        addr = first.addr
    push = ZmqPushQueue(
        addr,
        create=False,
        codec=backend.CODEC,
        security=Curve.client(public),
        linger=0.5,
    )
    push.put(backend.ExitMsg())
    with (
        ZmqPullQueue(addr, create=True, codec=backend.CODEC, security=nobody),
        caplog.at_level(logging.WARNING),
    ):
        outflow = push._outflow
        assert outflow is not None
        until(outflow.refused)
        push.stop()
    assert "may be dropped" in caplog.text


def test_what_a_receiver_took_before_it_left_is_not_known(addr: str) -> None:
    with ZmqPushQueue(addr, create=False, codec=backend.CODEC, linger=60) as push:
        with ZmqPullQueue(addr, create=True, codec=backend.CODEC) as pull:
            push.put(backend.ExitMsg())
            assert pull.get(GENEROUS) == backend.ExitMsg()
            assert push.drain(GENEROUS) is True
        push.put(backend.ExitMsg())
        assert push.drain(GENEROUS) is False


def test_what_a_batch_has_more_wakes_the_next_one(addr: str) -> None:
    async def main() -> None:
        async with (
            ZmqAsyncPullQueue(addr, create=True, codec=backend.CODEC) as pull,
            ZmqAsyncPushQueue(addr, create=False, codec=backend.CODEC) as push,
        ):
            first = asyncio.ensure_future(pull.get_many(1))
            others = [asyncio.ensure_future(pull.get()) for _ in range(2)]
            await asyncio.sleep(0)
            await push.put_many([user(1, 1), user(2, 1), user(3, 1)])
            assert await first == [user(1, 1)]
            assert await asyncio.gather(*others) == [user(2, 1), user(3, 1)]

    asyncio.run(asyncio.wait_for(main(), GENEROUS))


def test_a_put_without_room_for_loans_goes_on_when_they_are_back(addr: str) -> None:
    async def main() -> None:
        async with ZmqAsyncPushQueue(
            addr, True, codec=backend.CODEC, copy=False, max_lent_bytes=2_000_000
        ) as push:
            puts = [
                asyncio.ensure_future(push.put(user(uid, 400_000))) for uid in range(4)
            ]
            await asyncio.sleep(0)
            async with ZmqAsyncPullQueue(addr, False, codec=backend.CODEC) as pull:
                for uid in range(4):
                    assert await pull.get() == user(uid, 400_000)
            await asyncio.gather(*puts)

    asyncio.run(asyncio.wait_for(main(), GENEROUS))


@pytest.mark.parametrize(
    "make",
    [
        lambda addr: ZmqPushQueue(addr, True, backend),  # type: ignore[arg-type]
        lambda addr: ZmqPullQueue(addr, True, backend),  # type: ignore[arg-type]
        lambda addr: ZmqAsyncPushQueue(addr, True, backend),  # type: ignore[arg-type]
        lambda addr: ZmqAsyncPullQueue(addr, True, backend),  # type: ignore[arg-type]
    ],
)
def test_a_module_in_place_of_its_codec_leaves_nothing_behind(
    addr: str, make: Any
) -> None:
    with pytest.raises(AttributeError):
        make(addr)
    assert not Path(addr.removeprefix("ipc://")).exists()


def test_an_error_that_is_raised_again_does_not_grow(addr: str) -> None:
    with StepPublisher(addr, backend.CODEC, 2) as pub:
        with StepSubscriber(addr, backend.CODEC, 1, 2):
            pub.wait_for_subscribers(timeout=GENEROUS)
        depths = []
        for _ in range(50):
            with pytest.raises(RankLost) as caught:
                until(lambda: pub.check())
            depths.append(len(caught.traceback))
        assert depths[-1] == depths[1]


def test_stopping_ends_a_drain(addr: str) -> None:
    async def main() -> None:
        push = ZmqAsyncPushQueue(addr, create=False, codec=backend.CODEC, linger=0)
        await push.put(backend.ExitMsg())
        draining = asyncio.ensure_future(push.drain())
        await asyncio.sleep(0.02)
        push.stop()
        with pytest.raises(QueueClosed):
            await draining

    asyncio.run(asyncio.wait_for(main(), GENEROUS))


def test_a_cancelled_exit_stops_all_the_same(addr: str) -> None:
    async def main() -> None:
        push = ZmqAsyncPushQueue(addr, create=False, codec=backend.CODEC, linger=60)

        async def use() -> None:
            async with push:
                await push.put(backend.ExitMsg())
                using.set()

        using = asyncio.Event()
        task = asyncio.ensure_future(use())
        await using.wait()
        await asyncio.sleep(0.02)
        push.linger_s = 0
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(QueueClosed):
            await push.put(backend.ExitMsg())

    asyncio.run(asyncio.wait_for(main(), GENEROUS))


def test_a_path_of_forty_characters_is_no_key(tmp_path: Path) -> None:
    for path in ("/etc/msgen/keys/production/scheduler.key", "x" * 36 + ".key"):
        assert len(path) == 40
        with pytest.raises(SecurityError, match="neither a key"):
            Curve.client(path)
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as short:
        public, _ = make_keys(Path(short), "server")
        exact = Path(short) / ("k" * (40 - len(short) - 1))
        public.rename(exact)
        assert len(str(exact)) == 40
        assert Curve.client(str(exact)).peer == zmq.auth.load_certificate(exact)[0]


def test_a_rank_that_connects_again_is_the_same_rank() -> None:
    """Its second connection may be heard of before the end of its first one."""
    topic = Announcement(1, 2, "backend", "f", b"instance").pack()
    roster = Roster("backend", "f", 2)
    for message in (b"\1" + STEP, b"\1" + topic, b"\1" + STEP, b"\1" + topic):
        roster.take(message)
    roster.check()
    for message in (b"\0" + STEP, b"\0" + topic, b"\0" + topic + b"x"):
        roster.take(message)
    assert roster.missing(1) == ()
    assert roster.complete(1)
    roster.take(b"\0" + topic)
    with pytest.raises(RankLost):
        roster.check()


def test_a_drain_that_is_interrupted_keeps_what_it_took(
    addr: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        ZmqPullQueue(addr, create=True, codec=backend.CODEC) as pull,
        ZmqPushQueue(addr, create=False, codec=backend.CODEC) as push,
    ):
        push.put(user(1, 1))
        push.put(user(2, 1))
        until(lambda: not pull.empty())
        waits = iter([None])

        def interrupted(*_: object) -> bool:
            next(waits)
            raise KeyboardInterrupt

        monkeypatch.setattr(pull, "_wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pull.drain(timeout=GENEROUS)
        monkeypatch.undo()
        assert [pull.get(GENEROUS), pull.get(GENEROUS)] == [user(1, 1), user(2, 1)]


def test_an_empty_batch_is_not_returned_as_nothing(addr: str) -> None:
    with (
        ZmqPullQueue(addr, create=True, codec=backend.CODEC) as pull,
        ZmqPushQueue(addr, create=False, codec=backend.CODEC) as push,
    ):
        push.put(backend.BatchBackendMsg([]))
        push.put(user(1, 1))
        assert pull.get_many(5, GENEROUS) == [user(1, 1)]


def test_a_raw_message_above_the_limit_is_counted(addr: str) -> None:
    with (
        ZmqPullQueue(
            addr, create=True, codec=backend.CODEC, max_message_bytes=100_000
        ) as pull,
        ZmqPushQueue(addr, create=False, codec=backend.CODEC) as push,
    ):
        push.put(backend.BatchBackendMsg([user(1, 20_000), user(2, 20_000)]))
        with pytest.raises(DecodeError, match="the queue's limit is 100,000"):
            pull.get_raw(GENEROUS)
        assert pull.stats.decode_errors == 1


def test_long_timeouts_are_no_overflow(addr: str) -> None:
    with (
        ZmqPullQueue(addr, create=True, codec=backend.CODEC, timeout=1e9) as pull,
        ZmqPushQueue(addr, create=False, codec=backend.CODEC) as push,
    ):
        push.put(user(1, 1), timeout=float("inf"))
        assert pull.get(timeout=float("inf")) == user(1, 1)
        push.put(user(2, 1))
        assert pull.get() == user(2, 1)


def test_a_process_may_have_many_queues(tmp_path: Path) -> None:
    queues = [
        ZmqPushQueue(f"ipc://{tmp_path / 'q'}", create=False, codec=backend.CODEC)
        for _ in range(400)
    ]
    start = time.monotonic()
    for queue in queues:
        queue.stop()
    assert time.monotonic() - start < GENEROUS

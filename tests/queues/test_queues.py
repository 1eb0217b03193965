"""Queues between real processes over real sockets."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq
from building import built
from children import send_requests, subscribe, user
from msgen.generated import backend, tokenizer
from msgen.runtime import (
    AddressError,
    DecodeError,
    EncodeError,
    MessageTooLarge,
    MsgenError,
    QueueClosed,
    QueueEmpty,
    QueueFull,
    SchemaMismatch,
    SubscribersMissing,
)
from msgen.runtime.queues import (
    HIGH_WATER_MARK,
    QueueStats,
    ZmqPubQueue,
    ZmqPullQueue,
    ZmqPushQueue,
    ZmqSubQueue,
)
from processes import CONTEXT, GENEROUS, answer, finished, running, until


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A module of a group without a batch message."""
    folder = tmp_path_factory.mktemp("plain")
    (folder / "schema").mkdir()
    (folder / "schema" / "plain.yaml").write_text(
        "group: plain\nreceiver: x\nmessages:\n  Ping: {tag: 1, fields: {seq: int}}\n"
    )
    with built(folder, folder / "schema") as modules:
        yield modules.module("plain")


def test_messages_arrive_from_another_process_in_order(
    addr: str, pull: ZmqPullQueue[Any]
) -> None:
    sizes = [3, 0, 16 * 1024, 100_000, 1] * 20
    with running(send_requests, addr, sizes) as process:
        for uid, tokens in enumerate(sizes):
            assert pull.get(timeout=GENEROUS) == user(uid, tokens)
        finished(process)
    assert pull.empty()


def test_the_sending_end_may_bind_and_a_free_port_be_asked_for() -> None:
    with (
        ZmqPushQueue("tcp://127.0.0.1:0", create=True, codec=backend.CODEC) as push,
        ZmqPullQueue(push.addr, create=False, codec=backend.CODEC) as queue,
    ):
        assert push.addr.startswith("tcp://127.0.0.1:")
        assert not push.addr.endswith(":0")
        push.put(backend.ExitMsg(), timeout=GENEROUS)
        assert queue.get(timeout=GENEROUS) == backend.ExitMsg()


def test_an_encode_error_reaches_the_caller_and_sends_nothing(
    addr: str, pull: ZmqPullQueue[Any]
) -> None:
    with ZmqPushQueue(addr, create=False, codec=backend.CODEC) as push:
        with pytest.raises(EncodeError):
            push.put(backend.AbortBackendMsg("x"))  # type: ignore[arg-type]
        push.put(backend.ExitMsg())
        assert pull.get(timeout=GENEROUS) == backend.ExitMsg()


def test_a_bad_message_is_an_error_and_the_next_one_arrives(
    addr: str, pull: ZmqPullQueue[Any]
) -> None:
    with (
        ZmqPushQueue(addr, create=False, codec=tokenizer.CODEC) as stranger,
        zmq.Context() as context,
        context.socket(zmq.PUSH) as raw,
    ):
        stranger.put(tokenizer.AbortMsg(1))
        with pytest.raises(SchemaMismatch):
            pull.get(timeout=GENEROUS)
        raw.connect(addr)
        raw.send(backend.encode(backend.ExitMsg()))
        assert pull.get(timeout=GENEROUS) == backend.ExitMsg()


def test_raw_frames_can_be_passed_on(addr: str, tmp_path: Path) -> None:
    onward = f"ipc://{tmp_path / 'onward'}"
    with (
        ZmqPullQueue(addr, create=True, codec=backend.CODEC) as first,
        ZmqPullQueue(onward, create=True, codec=backend.CODEC) as second,
        ZmqPushQueue(addr, create=False, codec=backend.CODEC) as push,
        ZmqPushQueue(onward, create=False, codec=backend.CODEC) as relay,
    ):
        push.put(user(1, 50_000))
        frames = first.get_raw(timeout=GENEROUS)
        assert len(frames) == 2
        relay.put_raw(frames)
        assert second.get(timeout=GENEROUS) == first.decode(frames) == user(1, 50_000)


def test_a_full_queue_makes_the_sender_wait_and_loses_nothing(
    addr: str, pull: ZmqPullQueue[Any]
) -> None:
    with ZmqPushQueue(addr, create=False, codec=backend.CODEC) as push:
        sent = 0
        with pytest.raises(QueueFull, match="no peer took a message within 0"):
            while sent < 100 * HIGH_WATER_MARK:
                push.put(
                    backend.AbortBackendMsg(sent), timeout=0.5 if sent else GENEROUS
                )
                sent += 1
        assert sent >= HIGH_WATER_MARK
        for uid in range(sent):
            assert pull.get(timeout=GENEROUS) == backend.AbortBackendMsg(uid)
        push.put(backend.ExitMsg(), timeout=GENEROUS)
        assert pull.get(timeout=GENEROUS) == backend.ExitMsg()


def test_without_a_peer_a_put_times_out(addr: str) -> None:
    with (
        ZmqPushQueue(addr, create=True, codec=backend.CODEC) as push,
        pytest.raises(QueueFull),
    ):
        push.put(backend.ExitMsg(), timeout=0)


def test_without_a_message_a_get_times_out(pull: ZmqPullQueue[Any]) -> None:
    assert pull.empty()
    with pytest.raises(QueueEmpty, match="no message arrived within 0 s"):
        pull.get(timeout=0)


def test_a_stopped_queue_says_so(addr: str) -> None:
    queue = ZmqPullQueue(addr, create=True, codec=backend.CODEC)
    queue.stop()
    queue.stop()
    with pytest.raises(QueueClosed, match="the queue is stopped; make a new one"):
        queue.get(timeout=0)
    with ZmqPullQueue(addr, create=True, codec=backend.CODEC):
        pass


def test_an_address_that_cannot_be_bound_is_an_error_that_leaves_no_socket() -> None:
    with pytest.raises(AddressError, match=r"'/nowhere/at'.*No such file"):
        ZmqPullQueue("ipc:///nowhere/at/all", create=True, codec=backend.CODEC)


def test_a_queue_has_a_timeout_of_its_own(addr: str) -> None:
    with ZmqPullQueue(addr, create=True, codec=backend.CODEC, timeout=0.01) as queue:
        with pytest.raises(QueueEmpty, match=r"within 0\.01 s"):
            queue.get()
        with pytest.raises(QueueEmpty, match="within 0 s"):
            queue.get(timeout=0)
        with pytest.raises(QueueEmpty, match=r"within 0\.01 s"):
            queue.get_raw()


def test_many_messages_travel_as_one_batch(addr: str, pull: ZmqPullQueue[Any]) -> None:
    msgs: list[Any] = [
        user(1, 3),
        backend.AbortBackendMsg(2),
        user(3, 50_000),
        backend.ExitMsg(),
    ]
    with ZmqPushQueue(addr, create=False, codec=backend.CODEC) as push:
        push.put_many(msgs)
        push.put_many([])
        push.put_many(iter(msgs))
        assert push.stats.messages == 2
        assert pull.get(timeout=GENEROUS) == backend.BatchBackendMsg(msgs)
        assert pull.get_many(3, GENEROUS) == msgs[:3]
        assert pull.stats.waiting == 1
        assert pull.get(timeout=GENEROUS) == msgs[3]
        assert pull.empty()


def test_a_batch_with_a_wrong_message_is_not_sent(
    addr: str, pull: ZmqPullQueue[Any]
) -> None:
    with ZmqPushQueue(addr, create=False, codec=backend.CODEC) as push:
        with pytest.raises(EncodeError, match=r"data\[1\]\.uid"):
            push.put_many([user(1, 3), backend.AbortBackendMsg("x")])  # type: ignore[arg-type]
        with pytest.raises(EncodeError, match=r"BatchBackendMsg\.data\[0\]"):
            push.put_many([backend.BatchBackendMsg([])])
        push.put(backend.ExitMsg())
        assert pull.get(timeout=GENEROUS) == backend.ExitMsg()


def test_without_a_batch_many_messages_travel_one_by_one(addr: str, plain: Any) -> None:
    msgs = [plain.Ping(seq) for seq in range(5)]
    with (
        ZmqPushQueue(addr, create=True, codec=plain.CODEC, hwm=1) as push,
        ZmqPullQueue(addr, create=False, codec=plain.CODEC, hwm=1) as pull,
    ):
        push.put_many(msgs[:2], GENEROUS)
        assert push.stats.messages == 2
        assert pull.get(GENEROUS) == msgs[0]
        assert pull.get_many(10, GENEROUS) == msgs[1:2]
        many = [plain.Ping(seq) for seq in range(100_000)]
        with pytest.raises(QueueFull) as caught:
            push.put_many(many, timeout=0.2)
        assert 0 < caught.value.sent < len(many)
        taken: list[Any] = []
        while len(taken) < caught.value.sent:
            taken += pull.get_many(100, GENEROUS)
        assert taken == many[: caught.value.sent]
        with pytest.raises(EncodeError):
            push.put_many([msgs[0], plain.Ping("x")])
        assert pull.drain() == []


def test_get_many_of_no_messages_makes_no_sense(pull: ZmqPullQueue[Any]) -> None:
    with pytest.raises(ValueError, match="max_messages: expected 1 or more, got 0"):
        pull.get_many(0)


def test_get_many_returns_what_came_before_a_bad_message_first(
    addr: str, pull: ZmqPullQueue[Any]
) -> None:
    with ZmqPushQueue(addr, create=False, codec=backend.CODEC) as push:
        for raw in (
            backend.encode(user(1, 1)),
            b"junk",
            backend.encode(user(2, 1)),
            b"more junk",
        ):
            push.put_raw(raw)
        until(lambda: pull.stats.waiting)
        taken: list[Any] = []
        errors = 0
        while len(taken) + errors < 4:
            try:
                taken += pull.get_many(10, GENEROUS)
            except DecodeError:
                errors += 1
                assert len(taken) == errors
        assert taken == [user(1, 1), user(2, 1)]
        assert pull.stats.decode_errors == errors == 2


def test_raw_messages_cannot_overtake_decoded_ones(
    addr: str, pull: ZmqPullQueue[Any]
) -> None:
    with ZmqPushQueue(addr, create=False, codec=backend.CODEC) as push:
        push.put_many([user(1, 1), user(2, 1)])
        assert pull.get_many(1, GENEROUS) == [user(1, 1)]
        with pytest.raises(MsgenError, match="get_many holds 1 decoded messages back"):
            pull.get_raw(timeout=0)
        assert pull.drain() == [user(2, 1)]


def test_drain_takes_all_that_is_there(addr: str, pull: ZmqPullQueue[Any]) -> None:
    assert pull.drain() == []
    with ZmqPushQueue(addr, create=False, codec=backend.CODEC) as push:
        for uid in range(1_500):
            push.put(backend.AbortBackendMsg(uid), timeout=GENEROUS)
            if uid == 1_199:
                push.put_raw(b"junk", timeout=GENEROUS)
                until(lambda: not pull.empty())
                first = pull.drain(timeout=0.5)
    assert first == [backend.AbortBackendMsg(uid) for uid in range(1_200)]
    with pytest.raises(DecodeError):
        pull.drain(timeout=GENEROUS)
    assert pull.drain(timeout=0.5) == [
        backend.AbortBackendMsg(uid) for uid in range(1_200, 1_500)
    ]


def test_stats_count_messages_bytes_and_errors(
    addr: str, pull: ZmqPullQueue[Any]
) -> None:
    with ZmqPushQueue(addr, create=False, codec=backend.CODEC) as push:
        push.put(user(1, 50_000))
        push.put_raw([b"junk"])
        push.put(backend.ExitMsg())
        size = sum(len(memoryview(f)) for f in backend.encode_frames(user(1, 50_000)))
        exit_size = len(backend.encode(backend.ExitMsg()))
        pull.get(timeout=GENEROUS)
        with pytest.raises(DecodeError):
            pull.get(timeout=GENEROUS)
        assert pull.get_raw(timeout=GENEROUS) == [backend.encode(backend.ExitMsg())]
        whole = size + 4 + exit_size
        assert push.stats == QueueStats(3, whole, 0, 0)
        assert pull.stats == QueueStats(3, whole, 1, 0)


def test_a_message_above_the_limit_is_refused_at_the_sender(addr: str) -> None:
    with ZmqPushQueue(
        addr, create=True, codec=backend.CODEC, max_message_bytes=1_000
    ) as push:
        for msg in (user(1, 1_000), user(1, 100_000)):
            with pytest.raises(MessageTooLarge, match="the queue's limit is 1,000"):
                push.put(msg)
            with pytest.raises(MessageTooLarge):
                push.put_many([msg])


def test_a_frame_above_the_limit_is_dropped_with_its_peer_before_it_is_read(
    addr: str,
) -> None:
    with (
        ZmqPullQueue(
            addr, create=True, codec=backend.CODEC, max_message_bytes=10_000
        ) as pull,
        ZmqPushQueue(addr, create=False, codec=backend.CODEC) as push,
    ):
        push.put(user(1, 10))
        assert pull.get(timeout=GENEROUS) == user(1, 10)
        push.put(user(2, 100_000))
        # The connection is made again, and what is put then arrives.
        received = None
        while received is None:
            push.put(user(3, 10), timeout=GENEROUS)
            with contextlib.suppress(QueueEmpty):
                received = pull.get(timeout=0.05)
        assert received == user(3, 10)


def test_frames_above_the_limit_together_are_a_decode_error(addr: str) -> None:
    with (
        ZmqPullQueue(
            addr, create=True, codec=backend.CODEC, max_message_bytes=100_000
        ) as pull,
        ZmqPushQueue(addr, create=False, codec=backend.CODEC) as push,
    ):
        push.put(backend.BatchBackendMsg([user(1, 20_000), user(2, 20_000)]))
        push.put(backend.ExitMsg())
        with pytest.raises(DecodeError, match=r"have 160,000 bytes.*limit is 100,000"):
            pull.get(timeout=GENEROUS)
        assert pull.get(timeout=GENEROUS) == backend.ExitMsg()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"hwm": 0}, "hwm: expected 1 or more"),
        ({"max_message_bytes": 0}, "max_message_bytes: expected 1 or more"),
        ({"linger": -1}, "linger: expected 0 or more seconds"),
        ({"linger": float("inf")}, "and an end, got inf"),
        ({"timeout": -0.5}, "timeout: expected 0 or more"),
    ],
)
def test_options_out_of_range_are_refused(
    addr: str, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        ZmqPullQueue(addr, create=True, codec=backend.CODEC, **options)


def test_publishing_reaches_every_subscriber(addr: str) -> None:
    with ZmqPubQueue(addr, create=True, codec=tokenizer.CODEC) as pub:
        with pytest.raises(
            SubscribersMissing, match=r"0 of 2 subscribers .* after 0 s"
        ):
            pub.wait_for_subscribers(2, timeout=0)
        results = [CONTEXT.Pipe() for _ in range(2)]
        with (
            running(subscribe, addr, 3_000, results[0][1]),
            running(subscribe, addr, 3_000, results[1][1]),
        ):
            pub.wait_for_subscribers(2, timeout=GENEROUS)
            for uid in range(3_000):
                pub.put(tokenizer.AbortMsg(uid), timeout=GENEROUS)
            for mine, _ in results:
                assert answer(mine) == list(range(3_000))
            until(lambda: pub.subscribers == 0)
        pub.put(tokenizer.AbortMsg(1), timeout=0)
        pub.put_raw(tokenizer.encode(tokenizer.AbortMsg(1)), timeout=0)


def test_a_subscriber_that_does_not_keep_up_makes_the_publisher_wait(
    addr: str,
) -> None:
    with (
        ZmqPubQueue(addr, create=True, codec=tokenizer.CODEC, hwm=10) as pub,
        ZmqSubQueue(addr, create=False, codec=tokenizer.CODEC, hwm=10) as slow,
    ):
        pub.wait_for_subscribers(1, timeout=GENEROUS)
        sent = 0
        with pytest.raises(QueueFull):
            while sent < 1_000_000:
                pub.put(tokenizer.AbortMsg(sent), timeout=0.2)
                sent += 1
        assert sent >= 20
        for uid in range(sent):
            assert slow.get(GENEROUS) == tokenizer.AbortMsg(uid)
        pub.put(tokenizer.AbortMsg(sent), timeout=GENEROUS)
        assert slow.get(GENEROUS) == tokenizer.AbortMsg(sent)

"""Queues between real processes over real sockets."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import zmq
from msgen.generated import backend, tokenizer
from msgen.generated.common import SamplingParams
from msgen.runtime import (
    AddressError,
    DecodeError,
    EncodeError,
    QueueClosed,
    QueueEmpty,
    QueueFull,
    SchemaMismatch,
)
from msgen.runtime.queues import HIGH_WATER_MARK, ZmqPullQueue, ZmqPushQueue

GENEROUS = 60.0
"""Seconds that a loaded machine may take; waits end as soon as the event is there."""


@pytest.fixture
def addr(tmp_path: Path) -> str:
    return f"ipc://{tmp_path / 'q'}"


@pytest.fixture
def pull(addr: str) -> Iterator[ZmqPullQueue[Any]]:
    with ZmqPullQueue(addr, create=True, codec=backend.CODEC) as queue:
        yield queue


def user(uid: int, tokens: int) -> backend.UserMsg:
    ids = torch.arange(tokens, dtype=torch.int32)
    return backend.UserMsg(uid, ids, SamplingParams())


def send_requests(addr: str, sizes: list[int]) -> None:
    with ZmqPushQueue(addr, create=False, codec=backend.CODEC) as queue:
        for uid, tokens in enumerate(sizes):
            queue.put(user(uid, tokens))


def test_messages_arrive_from_another_process_in_order(
    addr: str, pull: ZmqPullQueue[Any]
) -> None:
    sizes = [3, 0, 16 * 1024, 100_000, 1] * 20
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=send_requests, args=(addr, sizes))
    process.start()
    for uid, tokens in enumerate(sizes):
        assert pull.get(timeout=GENEROUS) == user(uid, tokens)
    process.join(GENEROUS)
    assert process.exitcode == 0
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


def test_a_message_may_be_changed_once_put_has_returned(
    addr: str, pull: ZmqPullQueue[Any]
) -> None:
    with ZmqPushQueue(addr, create=False, codec=backend.CODEC) as push:
        for tokens in (3, 100_000):
            msg = user(1, tokens)
            push.put(msg, timeout=GENEROUS)
            msg.input_ids.zero_()
            assert pull.get(timeout=GENEROUS) == user(1, tokens)


def test_an_encode_error_reaches_the_caller_and_sends_nothing(
    addr: str, pull: ZmqPullQueue[Any]
) -> None:
    with ZmqPushQueue(addr, create=False, codec=backend.CODEC) as push:
        with pytest.raises(EncodeError):
            push.put(user("x", 1))  # type: ignore[arg-type]
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
        for frames in ([b""], [b"\xc1"], [b"\x91", b"more"], [b"\xdd\xff\xff\xff\xff"]):
            raw.send_multipart(frames)
            with pytest.raises(DecodeError):
                pull.get(timeout=GENEROUS)
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

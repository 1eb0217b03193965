"""Nothing is lost, doubled or changed on its way, whatever the load.

MSGEN_MESSAGES and MSGEN_STEPS set the counts; `make test` runs with the ones below.
"""

from __future__ import annotations

import hashlib
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import zmq
from children import digest_steps, send_numbers, user
from msgen.generated import backend, tokenizer
from msgen.runtime import QueueFull
from msgen.runtime.broadcast import StepPublisher
from msgen.runtime.queues import ZmqPullQueue, ZmqPushQueue
from processes import CONTEXT, GENEROUS, answer, finished, running, until
from sizes import size

MESSAGES = size("MSGEN_MESSAGES", 60_000, 1_000_000)
STEPS = size("MSGEN_STEPS", 6_000, 200_000)


@pytest.mark.parametrize("receiver_binds", [True, False])
def test_messages_arrive_all_and_in_order_through_tiny_queues(
    addr: str, receiver_binds: bool
) -> None:
    """Two senders, high-water marks of 2 to 5, and a receiver that stops now and then."""
    count = MESSAGES // 2
    chance = random.Random(7)
    senders = 2 if receiver_binds else 1
    with ZmqPullQueue(
        addr, receiver_binds, codec=tokenizer.CODEC, hwm=3, timeout=GENEROUS
    ) as pull:
        expected = [sender * count for sender in range(senders)]
        with running(send_numbers, addr, 0, count, 2, not receiver_binds) as first:
            if senders == 2:
                with running(send_numbers, addr, count, count, 5, False) as second:
                    take_numbers(pull, expected, count, chance)
                    finished(second)
            else:
                take_numbers(pull, expected, count, chance)
            finished(first)
        assert pull.empty()
        assert pull.stats.messages == senders * count


def take_numbers(
    pull: ZmqPullQueue[Any], expected: list[int], count: int, chance: random.Random
) -> None:
    """Take `count` messages of each sender, in order, checking each."""
    for _ in range(count * len(expected)):
        msg = pull.get()
        sender = msg.uid // count
        assert (msg.uid, msg.next_token) == (expected[sender], msg.uid & 0xFFFF)
        expected[sender] += 1
        if chance.random() < 0.0002:
            time.sleep(chance.random() * 0.01)


def test_every_rank_gets_every_step_though_one_is_slow(addr: str) -> None:
    chance = random.Random(3)
    raws = [
        backend.encode_frames(user(uid, chance.choice([0, 3, 40]))) for uid in range(64)
    ]
    large = [bytes(frame) for frame in backend.encode_frames(user(64, 20_000))]
    assert len(large) == 2
    pipes = [CONTEXT.Pipe() for _ in range(3)]
    options: list[dict[str, Any]] = [
        {"hwm": 4},
        {"hwm": 4, "pause": 0.01},
        {"hwm": 100},
    ]
    sent = hashlib.sha256()
    with (
        StepPublisher(addr, backend.CODEC, 4, hwm=4, timeout=GENEROUS) as publisher,
        running(digest_steps, addr, 1, 4, STEPS, pipes[0][1], options[0]),
        running(digest_steps, addr, 2, 4, STEPS, pipes[1][1], options[1]),
        running(digest_steps, addr, 3, 4, STEPS, pipes[2][1], options[2]),
    ):
        publisher.wait_for_subscribers(timeout=GENEROUS)
        for number in range(STEPS):
            messages: list[Any] = chance.choices(raws, k=chance.randrange(5))
            if number % 100 == 0:
                messages.insert(chance.randrange(len(messages) + 1), large)
            step = publisher.put_raw(messages)
            sent.update(b"%d:%d" % (step.number, len(messages)))
            for frames in messages:
                for frame in frames:
                    sent.update(frame)
        for mine, _ in pipes:
            assert mine.poll(GENEROUS)
            assert answer(mine) == sent.hexdigest()


@pytest.fixture(params=["a receiver is there", "no receiver is there yet"])
def early(request: pytest.FixtureRequest) -> bool:
    return bool(request.param.startswith("no"))


def receive(addr: str, count: int) -> Iterator[Any]:
    with ZmqPullQueue(addr, create=True, codec=backend.CODEC) as pull:
        for _ in range(count):
            yield pull.get(timeout=GENEROUS)


@pytest.mark.parametrize("tokens", [3, 10_000, 16 * 1024, 500_000])
def test_what_is_put_does_not_change_any_more(
    addr: str, tokens: int, early: bool
) -> None:
    """Payloads inside the array and beside it, before and after the receiver is there."""
    arriving = receive(addr, 20)
    with ZmqPushQueue(addr, create=False, codec=backend.CODEC) as push:
        if not early:
            push.put(user(0, 1))
            assert next(arriving) == user(0, 1)
        msg = user(1, tokens)
        batch = backend.BatchBackendMsg([user(2, tokens)])
        for how in (push.put, lambda one: push.put_many([one])):
            msg = user(1, tokens)
            how(msg)
            msg.input_ids.zero_()
            msg.uid = 99
        push.put(batch)
        assert isinstance(batch.data[0], backend.UserMsg)
        batch.data[0].input_ids.zero_()
        batch.data.clear()
        frames = [bytearray(frame) for frame in backend.encode_frames(user(3, tokens))]
        push.put_raw(frames)
        for frame in frames:
            frame[:] = bytes(len(frame))
        assert next(arriving) == user(1, tokens)
        assert next(arriving) == backend.BatchBackendMsg([user(1, tokens)])
        assert next(arriving) == backend.BatchBackendMsg([user(2, tokens)])
        assert next(arriving) == user(3, tokens)
    arriving.close()  # type: ignore[attr-defined]


def test_the_tracker_of_a_lent_message_covers_every_frame(addr: str) -> None:
    msgs: list[Any] = [user(1, 400_000), user(2, 3), user(3, 500_000)]
    with ZmqPushQueue(
        addr, create=False, codec=backend.CODEC, copy=False, linger=0
    ) as push:
        tracker = push.put(backend.BatchBackendMsg(msgs))
        assert tracker is not None
        assert not tracker.done
        # One tracker a frame; the head and other small ones are copied at once.
        assert len(tracker.peers) == 3
        assert sum(not peer.done for peer in tracker.peers) == 2
        with ZmqPullQueue(addr, create=True, codec=backend.CODEC) as pull:
            received = pull.get(timeout=GENEROUS)
            tracker.wait(GENEROUS)
            assert all(peer.done for peer in tracker.peers)
            for msg in msgs:
                msg.input_ids.zero_()
            assert received == backend.BatchBackendMsg(
                [user(1, 400_000), user(2, 3), user(3, 500_000)]
            )
            small = push.put(user(4, 3))
            assert small is not None
            small.wait(GENEROUS)


def test_a_lent_tensor_is_not_copied(addr: str) -> None:
    """What the test above relies on: a change before the message left does arrive."""
    with ZmqPushQueue(addr, create=False, codec=backend.CODEC, copy=False) as push:
        msg = user(1, 400_000)
        push.put(msg)
        msg.input_ids.zero_()
        with ZmqPullQueue(addr, create=True, codec=backend.CODEC) as pull:
            received: Any = pull.get(timeout=GENEROUS)
    assert torch.equal(received.input_ids, torch.zeros(400_000, dtype=torch.int32))


def test_what_is_lent_is_bounded(addr: str) -> None:
    size = 4 * 400_000
    with ZmqPushQueue(
        addr,
        create=False,
        codec=backend.CODEC,
        copy=False,
        max_lent_bytes=3 * size + 1_000,
        linger=0,
    ) as push:
        trackers = [push.put(user(uid, 400_000), timeout=0) for uid in range(3)]
        with pytest.raises(
            QueueFull, match=r"[\d,]+ bytes of earlier messages are still"
        ):
            push.put(user(3, 400_000), timeout=0.05)
        with ZmqPullQueue(addr, create=True, codec=backend.CODEC) as pull:
            for uid in range(3):
                assert pull.get(timeout=GENEROUS) == user(uid, 400_000)
            for uid in range(3, 10):
                trackers.append(push.put(user(uid, 400_000), timeout=GENEROUS))
                assert pull.get(timeout=GENEROUS) == user(uid, 400_000)
        for tracker in trackers:
            assert tracker is not None
            tracker.wait(GENEROUS)


def test_received_frames_are_passed_on_without_a_copy_and_without_a_tracker(
    addr: str,
) -> None:
    with (
        ZmqPullQueue(addr, create=True, codec=backend.CODEC) as pull,
        ZmqPushQueue(addr, create=False, codec=backend.CODEC, copy=False) as push,
    ):
        push.put(user(1, 50_000))
        frames = pull.get_raw(timeout=GENEROUS)
        assert [type(frame) for frame in frames] == [bytes, zmq.Frame]
        push.put_raw(frames)
        assert pull.get(timeout=GENEROUS) == user(1, 50_000)


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("copy", [True, False])
def test_memory_stays_flat(addr: str, copy: bool) -> None:
    """As many messages as half an hour of a busy engine brings, large ones among them."""
    kinds: list[Any] = [
        backend.AbortBackendMsg(1),
        user(1, 100),
        user(1, 1_000),
        user(1, 30_000),
        backend.BatchBackendMsg([user(1, 20_000), user(2, 10)]),
    ]
    rounds = MESSAGES // 50
    with (
        ZmqPullQueue(addr, create=True, codec=backend.CODEC) as pull,
        ZmqPushQueue(addr, create=False, codec=backend.CODEC, copy=copy) as push,
    ):
        sizes = []
        for number in range(rounds):
            for msg in kinds:
                push.put(msg, timeout=GENEROUS)
            push.put_raw(b"junk", timeout=GENEROUS)
            for _ in kinds:
                pull.get(timeout=GENEROUS)
            until(lambda: not pull.empty())
            pull.get_raw(timeout=GENEROUS)
            if number % (rounds // 10) == rounds // 10 - 1:
                sizes.append(resident_bytes())
    # The first rounds fill allocators' pools. What is left is less than a tenth of a message a round.
    assert max(sizes[3:]) - sizes[2] < 8 << 20

"""Peers that are killed in the middle of something, or send garbage: the others go on."""

from __future__ import annotations

import random
import socket
import struct
from pathlib import Path
from typing import Any

import pytest
import zmq
from children import (
    publish_for_ever,
    send_for_ever,
    subscribe,
    take_for_ever,
    take_uids,
    user,
)
from msgen.generated import backend, tokenizer
from msgen.runtime import DecodeError, QueueEmpty, QueueFull, SchemaMismatch
from msgen.runtime.codec import wire
from msgen.runtime.queues import (
    ZmqPubQueue,
    ZmqPullQueue,
    ZmqPushQueue,
    ZmqSubQueue,
)
from processes import CONTEXT, GENEROUS, answer, finished, running, until
from sizes import size

ROUNDS = size("MSGEN_KILLS", 2, 30)


def test_a_sender_killed_while_sending_costs_only_its_last_messages(addr: str) -> None:
    """Messages of one and of two frames; none arrives in part."""
    chance = random.Random(1)
    sizes = [3, 50_000, 20_000, 0]
    with ZmqPullQueue(addr, create=True, codec=backend.CODEC) as pull:
        for _ in range(ROUNDS):
            mine, theirs = CONTEXT.Pipe()
            with running(send_for_ever, addr, sizes, theirs) as process:
                assert mine.poll(GENEROUS)
                taken = 0
                for _ in range(chance.randrange(30)):
                    assert pull.get(GENEROUS) == user(taken, sizes[taken % 4])
                    taken += 1
                process.kill()
                process.join()
            while True:
                try:
                    msg: Any = pull.get(timeout=0.5)
                except QueueEmpty:
                    break
                assert msg == user(taken, sizes[taken % 4])
                taken += 1
        assert pull.stats.decode_errors == 0
        with ZmqPushQueue(addr, create=False, codec=backend.CODEC) as push:
            push.put(backend.ExitMsg())
            assert pull.get(GENEROUS) == backend.ExitMsg()


@pytest.mark.parametrize("receiver_binds", [True, False])
def test_a_receiver_killed_while_receiving_is_replaced(
    addr: str, receiver_binds: bool
) -> None:
    """Lost is what had reached the killed process, and nothing after the next one is there."""
    for _ in range(ROUNDS):
        with ZmqPushQueue(
            addr, create=not receiver_binds, codec=backend.CODEC, hwm=5, linger=60
        ) as push:
            uid = 0
            mine, theirs = CONTEXT.Pipe()
            with running(take_for_ever, addr, receiver_binds, theirs) as process:
                while not mine.poll():
                    push.put(user(uid, 20_000), GENEROUS)
                    uid += 1
                process.kill()
                process.join()
            with pytest.raises(QueueFull):
                for _ in range(100_000):
                    push.put(user(uid, 3), timeout=0.05)
                    uid += 1
            mine, theirs = CONTEXT.Pipe()
            with running(take_uids, addr, receiver_binds, theirs) as process:
                first_for_the_new = uid
                for _ in range(100):
                    push.put(user(uid, 3), GENEROUS)
                    uid += 1
                push.put(backend.ExitMsg(), GENEROUS)
                assert mine.poll(GENEROUS)
                uids = answer(mine)
                finished(process)
        assert uids == list(range(uids[0], uid))
        assert uids[0] <= first_for_the_new
    assert not Path(addr.removeprefix("ipc://")).exists()


def test_a_killed_subscriber_is_forgotten(addr: str) -> None:
    with ZmqPubQueue(addr, create=True, codec=tokenizer.CODEC, hwm=5) as pub:
        pipe = CONTEXT.Pipe()
        with (
            running(subscribe, addr, 10**9, pipe[1]) as victim,
            ZmqSubQueue(addr, create=False, codec=tokenizer.CODEC, hwm=5) as sub,
        ):
            pub.wait_for_subscribers(2, GENEROUS)
            for uid in range(100):
                pub.put(tokenizer.AbortMsg(uid), GENEROUS)
                assert sub.get(GENEROUS) == tokenizer.AbortMsg(uid)
            victim.kill()
            for uid in range(1_000):
                pub.put(tokenizer.AbortMsg(uid), GENEROUS)
                assert sub.get(GENEROUS) == tokenizer.AbortMsg(uid)
            until(lambda: pub.subscribers == 1)


def test_a_killed_publisher_is_replaced(addr: str) -> None:
    with ZmqSubQueue(addr, create=False, codec=tokenizer.CODEC) as sub:
        for _ in range(3):
            mine, theirs = CONTEXT.Pipe()
            with running(publish_for_ever, addr, theirs) as process:
                assert mine.poll(GENEROUS)
                msg: Any = sub.get(GENEROUS)
                for uid in range(msg.uid + 1, msg.uid + 50):
                    assert sub.get(GENEROUS) == tokenizer.AbortMsg(uid)
                process.kill()
                process.join()
            while True:
                try:
                    sub.get(timeout=0.3)
                except QueueEmpty:
                    break


def test_a_peer_with_another_schema_is_told_and_good_ones_go_on(addr: str) -> None:
    with (
        ZmqPullQueue(addr, create=True, codec=backend.CODEC) as pull,
        ZmqPushQueue(addr, create=False, codec=tokenizer.CODEC) as stranger,
        ZmqPushQueue(addr, create=False, codec=backend.CODEC) as friend,
    ):
        good = bad = 0
        for uid in range(50):
            stranger.put(tokenizer.AbortMsg(uid))
            friend.put(backend.AbortBackendMsg(uid))
        while good + bad < 100:
            try:
                assert pull.get(GENEROUS) == backend.AbortBackendMsg(good)
                good += 1
            except SchemaMismatch as error:
                assert error.ours == backend.CODEC.fingerprint
                assert error.ours in str(error)
                assert error.theirs in str(error)
                theirs = int(tokenizer.CODEC.fingerprint[:6], 16) & ~1
                assert int(error.theirs, 16) == theirs
                bad += 1
        assert (good, bad) == (50, 50)
        assert pull.stats.decode_errors == 50


HEAD = backend.encode(user(1, 3))
FRAMED = [bytes(frame) for frame in backend.encode_frames(user(1, 50_000))]


def out_of_range() -> bytes:
    """A head whose slot names a frame that is not there."""
    slots = wire.unpack(FRAMED[0])
    assert slots[2] == 1
    slots[2] = 2
    return wire.pack(slots)


def garbage() -> list[list[bytes]]:
    chance = random.Random(9)
    return [
        [b""],
        [b"", b""],
        [b"\xc1"],
        [b"\x91", b"more"],
        [HEAD[:-1]],
        [HEAD + b"x"],
        FRAMED[:1],  # the payload is missing
        [FRAMED[1]],
        [FRAMED[0], FRAMED[1][:-1]],
        [out_of_range(), FRAMED[1]],
        [b"\xdd\xff\xff\xff\xff"],
        [b"\xdf\xff\xff\xff\xff"],
        [b"\xc6\xff\xff\xff\xff" + b"x" * 100],
        [b"\x91" * 100_000],
        [b"\x95\xce\xff\xff\xff\xff" + b"\xdd\x7f\xff\xff\xff" * 5],
        [b"x" * 1_000_000],
        [b"x"] * 1_000,
        *([chance.randbytes(chance.randrange(200))] for _ in range(500)),
        *(
            [chance.randbytes(20) for _ in range(chance.randrange(1, 6))]
            for _ in range(100)
        ),
    ]


@pytest.mark.parametrize("how", ["get", "get_many", "get_raw"])
def test_garbage_costs_only_itself(addr: str, how: str) -> None:
    with (
        ZmqPullQueue(addr, create=True, codec=backend.CODEC) as pull,
        zmq.Context() as context,
        context.socket(zmq.PUSH) as raw,
    ):
        raw.connect(addr)
        number = 0
        for frames in garbage():
            raw.send_multipart(frames)
            raw.send(backend.encode(backend.AbortBackendMsg(number)))
            errors = 0
            while True:
                try:
                    if how == "get":
                        msg = pull.get(GENEROUS)
                    elif how == "get_many":
                        (msg,) = pull.get_many(1, GENEROUS)
                    else:
                        msg = pull.decode(pull.get_raw(GENEROUS))
                except DecodeError:
                    errors += 1
                else:
                    break
            assert msg == backend.AbortBackendMsg(number)
            assert errors >= 1
            if how == "get_raw":
                assert errors == 1
            number += 1
        assert pull.stats.decode_errors >= number


def test_a_connection_that_speaks_no_zmtp_is_dropped(addr: str) -> None:
    """Raw bytes at the socket's file, and a frame that declares an absurd length."""
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL".ljust(54, b"\0")
    ready = b"\x05READY\x0bSocket-Type\x00\x00\x00\x04PUSH"
    absurd = b"\x02" + struct.pack(">Q", 1 << 62)
    with ZmqPullQueue(addr, create=True, codec=backend.CODEC) as pull:
        hostile = greeting + b"\x04" + bytes([len(ready)]) + ready + absurd
        for said in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 1_000, hostile):
            with socket.socket(socket.AF_UNIX) as stranger:
                stranger.settimeout(GENEROUS)
                stranger.connect(addr.removeprefix("ipc://"))
                stranger.sendall(said)
                if said is hostile:
                    # It answers with its own greeting, and hangs up.
                    while stranger.recv(1_000):
                        pass
            with ZmqPushQueue(addr, create=False, codec=backend.CODEC) as push:
                push.put(backend.ExitMsg())
                assert pull.get(GENEROUS) == backend.ExitMsg()
        assert pull.stats.decode_errors == 0

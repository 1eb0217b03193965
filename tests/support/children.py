"""What other processes do in tests of queues and broadcasts. Each function is one process."""

from __future__ import annotations

import hashlib
import os
import random
import time
from multiprocessing.connection import Connection
from typing import Any

import torch
from msgen.generated import backend, tokenizer
from msgen.generated.common import SamplingParams
from msgen.runtime import BroadcastError, MsgenError, QueueFull
from msgen.runtime.broadcast import StepPublisher, StepSubscriber
from msgen.runtime.queues import ZmqPubQueue, ZmqPullQueue, ZmqPushQueue, ZmqSubQueue
from processes import GENEROUS


def user(uid: int, tokens: int) -> backend.UserMsg:
    """A request whose content follows from its number and size."""
    ids = torch.arange(uid, uid + tokens, dtype=torch.int32)
    return backend.UserMsg(uid, ids, SamplingParams())


def send_requests(addr: str, sizes: list[int]) -> None:
    with ZmqPushQueue(addr, create=False, codec=backend.CODEC, linger=60) as queue:
        for uid, tokens in enumerate(sizes):
            queue.put(user(uid, tokens), timeout=GENEROUS)


def send_numbers(addr: str, first: int, count: int, hwm: int, create: bool) -> None:
    """Send `count` messages that carry ascending numbers."""
    with ZmqPushQueue(
        addr, create, codec=tokenizer.CODEC, hwm=hwm, timeout=GENEROUS, linger=60
    ) as queue:
        for number in range(first, first + count):
            queue.put(tokenizer.DetokenizeMsg(number, number & 0xFFFF, False))


def send_for_ever(addr: str, sizes: list[int], told: Connection) -> None:
    """Send without end, until killed; say when it has begun."""
    with ZmqPushQueue(addr, create=False, codec=backend.CODEC) as queue:
        uid = 0
        while True:
            queue.put(user(uid, sizes[uid % len(sizes)]), timeout=GENEROUS)
            uid += 1
            if uid == 10:
                told.send("sending")


def take_for_ever(addr: str, create: bool, told: Connection) -> None:
    """Receive without end, until killed; say when it has begun."""
    with ZmqPullQueue(addr, create, codec=backend.CODEC, timeout=GENEROUS) as queue:
        taken = 0
        while True:
            queue.get()
            taken += 1
            if taken == 10:
                told.send("receiving")


def take_uids(addr: str, create: bool, result: Connection) -> None:
    """Receive until ExitMsg, and report the numbers that came."""
    with ZmqPullQueue(addr, create, codec=backend.CODEC, timeout=GENEROUS) as queue:
        uids = []
        while not isinstance(msg := queue.get(), backend.ExitMsg):
            uids.append(msg.uid)  # type: ignore[union-attr]
        result.send(uids)


def stop_unsent(addr: str, linger: float, result: Connection) -> None:
    """Put messages that nobody takes, stop, and exit."""
    queue = ZmqPushQueue(addr, create=False, codec=backend.CODEC, linger=linger)
    for uid in range(10):
        queue.put(user(uid, 100_000))
    result.send("stopping")
    start = time.monotonic()
    queue.stop()
    result.send(time.monotonic() - start)


def put_until_full_and_stop(addr: str, result: Connection) -> None:
    """Put until neither this process nor the receiver's takes any more, then stop."""
    with ZmqPushQueue(
        addr, create=False, codec=backend.CODEC, hwm=1, linger=GENEROUS
    ) as queue:
        put = 0
        try:
            while True:
                queue.put(backend.AbortBackendMsg(put), timeout=1)
                put += 1
        except QueueFull:
            result.send(put)


def exit_without_stop(addr: str, create: bool, count: int) -> None:
    """Put messages and return: the process's exit has to send them and to tidy up."""
    global kept
    kept = ZmqPushQueue(addr, create, codec=backend.CODEC, linger=60, timeout=GENEROUS)
    for uid in range(count):
        kept.put(user(uid, 20_000))


kept: Any = None


def subscribe(addr: str, count: int, result: Connection) -> None:
    """Subscribe, and report the numbers of the first messages that come."""
    with ZmqSubQueue(
        addr, create=False, codec=tokenizer.CODEC, timeout=GENEROUS
    ) as queue:
        result.send([queue.get().uid for _ in range(count)])  # type: ignore[union-attr]


def publish_for_ever(addr: str, told: Connection) -> None:
    with ZmqPubQueue(addr, create=True, codec=tokenizer.CODEC) as queue:
        queue.wait_for_subscribers(1, GENEROUS)
        told.send("publishing")
        uid = 0
        while True:
            queue.put(tokenizer.AbortMsg(uid), timeout=GENEROUS)
            uid += 1


def digest_steps(
    addr: str,
    rank: int,
    world_size: int,
    steps: int,
    result: Connection,
    options: dict[str, Any],
) -> None:
    """Take so many steps and report a checksum of all that was in them.

    `pause` makes a slow rank: it stops for a moment at random steps.
    """
    pause = options.pop("pause", 0.0)
    time.sleep(options.pop("late", 0.0))
    chance = random.Random(rank)
    seen = hashlib.sha256()
    with StepSubscriber(
        addr, backend.CODEC, rank, world_size, timeout=GENEROUS, **options
    ) as subscriber:
        for _ in range(steps):
            step = subscriber.get_raw()
            seen.update(b"%d:%d" % (step.number, len(step.messages)))
            for frames in step.messages:
                for frame in frames:
                    seen.update(frame)  # type: ignore[arg-type]
            if pause and chance.random() < 0.001:
                time.sleep(pause)
        result.send(seen.hexdigest())


def follow_steps(
    addr: str, rank: int, world_size: int, fingerprint: str | None, result: Connection
) -> None:
    """Take steps until the broadcast ends; report how many there were and how it ended."""
    if fingerprint is not None:
        backend.CODEC.fingerprint = fingerprint
    taken = 0
    try:
        with StepSubscriber(
            addr, backend.CODEC, rank, world_size, timeout=GENEROUS
        ) as subscriber:
            while True:
                subscriber.get()
                taken += 1
                if taken == 10:
                    result.send("following")
    except MsgenError as error:
        result.send((taken, type(error).__name__, str(error)))


def publish_steps_for_ever(addr: str, world_size: int, told: Connection) -> None:
    with StepPublisher(addr, backend.CODEC, world_size, timeout=GENEROUS) as publisher:
        publisher.wait_for_subscribers()
        number = 0
        while True:
            publisher.put([user(number, 3), user(number, 20_000)])
            number += 1
            if number == 20:
                told.send(os.getpid())


def follow_and_stop_taking(
    addr: str, rank: int, world_size: int, told: Connection
) -> None:
    """Subscribe, take ten steps, and then take no more until told to."""
    try:
        with StepSubscriber(
            addr, backend.CODEC, rank, world_size, hwm=8, timeout=GENEROUS
        ) as subscriber:
            for _ in range(10):
                subscriber.get()
            told.send("stuck")
            told.recv()
            while True:
                subscriber.get()
    except BroadcastError:
        pass

"""What ranks of a broadcast do, in both ways: parts for workers.

msgen sends each step as one multipart message. The other way is what engines do today: a gloo
collective tells how many messages there are, then each goes through PUB and SUB by itself.

In both ways rank 0 passes on encoded messages and decodes nothing, and every other rank decodes
all messages of the step.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from datetime import timedelta
from itertools import repeat
from time import monotonic
from typing import Any, Protocol

import torch
import zmq
from msgen.runtime.broadcast import StepPublisher, StepSubscriber
from torch import distributed

from .cases import SMALL, make_cases
from .ends import MSGEN, bare_socket
from .processes import PATIENCE_S

_JOIN_S = PATIENCE_S / 2
"""Seconds that all ranks have to subscribe: less than the benchmark waits for the answer."""


class Role(Protocol):
    """A rank in one broadcast."""

    def run(self, steps: int, messages: int) -> tuple[float, int]:
        """Take part in so many steps of so many messages.

        Returns:
            For rank 0 when it began, for others when they ended, on the clock that all processes
            share; and how many messages passed.
        """

    def close(self) -> None: ...


class Rank:
    """A worker's part: a rank, with the process groups of all world sizes.

    Args:
        rank: which one.
        world_sizes: the number of ranks in each broadcast, the largest last.
        store: a file through which the ranks find each other.
    """

    def __init__(self, rank: int, world_sizes: Sequence[int], store: str) -> None:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", _loopback())
        distributed.init_process_group(
            "gloo",
            init_method=f"file://{store}",
            rank=rank,
            world_size=world_sizes[-1],
            timeout=timedelta(seconds=PATIENCE_S),
        )
        self._rank = rank
        self._groups: dict[int, Any] = {
            size: distributed.new_group(list(range(size))) for size in world_sizes
        }
        self._role: Role | None = None

    def bind(self, way: str, world_size: int, addr: str) -> None:
        """Become rank 0 of a broadcast."""
        if way == MSGEN:
            self._role = StepsOut(addr, world_size)
        else:
            self._role = CountsOut(addr, self._groups[world_size])

    def connect(self, way: str, world_size: int, addr: str) -> None:
        """Become another rank of a broadcast."""
        if way == MSGEN:
            self._role = StepsIn(addr, self._rank, world_size)
        else:
            self._role = CountsIn(addr, self._groups[world_size])

    def wait_for_subscribers(self, count: int) -> None:
        assert isinstance(self._role, (StepsOut, CountsOut))
        self._role.wait_for_subscribers(count)

    def run(self, steps: int, messages: int) -> tuple[float, int]:
        assert self._role is not None
        return self._role.run(steps, messages)

    def leave(self) -> None:
        """End the role in a broadcast."""
        if self._role is not None:
            self._role.close()
            self._role = None

    def close(self) -> None:
        self.leave()
        if distributed.is_initialized():
            distributed.destroy_process_group()


def _loopback() -> str:
    """Return the name of the interface by which this machine reaches itself."""
    names = [name for _, name in socket.if_nameindex()]
    return next((name for name in names if name.startswith("lo")), names[0])


class StepsOut:
    """msgen's rank 0."""

    def __init__(self, addr: str, world_size: int) -> None:
        case = make_cases()[SMALL]
        self._data = case.data
        self._publisher = StepPublisher(addr, case.codec, world_size)

    def wait_for_subscribers(self, count: int) -> None:
        self._publisher.wait_for_subscribers(count, _JOIN_S)

    def run(self, steps: int, messages: int) -> tuple[float, int]:
        put, raw = self._publisher.put_raw, [self._data] * messages
        start = monotonic()
        for _ in repeat(None, steps):
            put(raw)
        return start, steps * messages

    def close(self) -> None:
        self._publisher.stop()


class StepsIn:
    """msgen's other ranks."""

    def __init__(self, addr: str, rank: int, world_size: int) -> None:
        codec = make_cases()[SMALL].codec
        self._subscriber = StepSubscriber(addr, codec, rank, world_size)

    def run(self, steps: int, messages: int) -> tuple[float, int]:
        get_raw, decode = self._subscriber.get_raw, self._subscriber.decode
        passed = 0
        for _ in repeat(None, steps):
            passed += len(decode(get_raw()))
        return monotonic(), passed

    def close(self) -> None:
        self._subscriber.stop()


class CountsOut:
    """Rank 0 of the other way."""

    def __init__(self, addr: str, group: Any) -> None:
        self._group = group
        self._data = make_cases()[SMALL].data
        # XPUB is a PUB socket that tells who has subscribed.
        self._socket = bare_socket(zmq.XPUB, addr, True)
        self._socket.set(zmq.XPUB_VERBOSE, 1)
        # Else messages would be dropped: gloo lets rank 0 run ahead of the others.
        self._socket.set(zmq.XPUB_NODROP, 1)

    def wait_for_subscribers(self, count: int) -> None:
        for _ in range(count):
            if not self._socket.poll(int(_JOIN_S * 1000)):
                raise TimeoutError(f"not all of {count} ranks have subscribed")
            self._socket.recv()

    def run(self, steps: int, messages: int) -> tuple[float, int]:
        broadcast, send, data = self._group.broadcast, self._socket.send, self._data
        start = monotonic()
        for _ in repeat(None, steps):
            broadcast(torch.tensor(messages), 0).wait()
            for _ in repeat(None, messages):
                send(data)
        return start, steps * messages

    def close(self) -> None:
        self._socket.close()


class CountsIn:
    """The other ranks of the other way."""

    def __init__(self, addr: str, group: Any) -> None:
        self._group = group
        self._decode = make_cases()[SMALL].codec.decode
        self._socket = bare_socket(zmq.SUB, addr, False)
        self._socket.subscribe(b"")

    def run(self, steps: int, messages: int) -> tuple[float, int]:
        broadcast, recv, decode = self._group.broadcast, self._socket.recv, self._decode
        passed = 0
        for _ in repeat(None, steps):
            count = torch.tensor(-1)
            broadcast(count, 0).wait()
            passed += len([decode(recv()) for _ in range(int(count.item()))])
        return monotonic(), passed

    def close(self) -> None:
        self._socket.close()

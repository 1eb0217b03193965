"""The ends of blocking queues, as the rivals make them: what is called for each message.

All rivals have the same high-water mark. Nobody gives a timeout, the default of both msgen's queues
and bare sockets; the benchmark's own process bounds the waits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from itertools import count, repeat
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any

import zmq
from msgen.runtime.queues import HIGH_WATER_MARK, ZmqPullQueue, ZmqPushQueue

from .cases import BATCH, Case, make_cases

PYZMQ = "pyzmq"
CODEC = "pyzmq + codec"
MSGEN = "msgen"
BATCHES = f"msgen, batches of {BATCH}"


@dataclass(frozen=True)
class End:
    """One end of a queue.

    Attributes:
        call: sends a value, or receives one.
        value: what is sent, or expected.
        messages: how many messages a value has.
        close: closes the socket.
    """

    call: Callable[..., Any]
    value: Any
    messages: int
    close: Callable[[], object]


_numbers = count()


def fresh_address(folder: Path) -> str:
    """Return an address that was not used before: ZeroMQ frees one some time after a close."""
    return f"ipc://{folder}/{next(_numbers)}"


@cache
def bare_context() -> zmq.Context[zmq.Socket[bytes]]:
    """Return this process's context of bare sockets."""
    return zmq.Context()


def bare_socket(kind: int, addr: str, create: bool) -> zmq.Socket[bytes]:
    """Return a socket with msgen's high-water mark and nothing else changed."""
    socket = bare_context().socket(kind)
    socket.set_hwm(HIGH_WATER_MARK)
    socket.linger = 0
    if create:
        socket.bind(addr)
    else:
        socket.connect(addr)
    return socket


def push_end(rival: str, case: Case, addr: str, create: bool) -> End:
    if rival in (MSGEN, BATCHES):
        queue = ZmqPushQueue(addr, create, case.codec)
        if rival == MSGEN:
            return End(queue.put, case.message, 1, queue.stop)
        return End(queue.put_many, [case.message] * BATCH, BATCH, queue.stop)
    socket = bare_socket(zmq.PUSH, addr, create)
    if rival == PYZMQ:
        return End(socket.send, case.data, 1, socket.close)
    encode = case.codec.encode

    def put(message: Any) -> None:
        socket.send(encode(message))

    return End(put, case.message, 1, socket.close)


def pull_end(rival: str, case: Case, addr: str, create: bool) -> End:
    if rival in (MSGEN, BATCHES):
        queue = ZmqPullQueue(addr, create, case.codec)
        if rival == MSGEN:
            return End(queue.get, case.message, 1, queue.stop)
        get_many = partial(queue.get_many, BATCH)
        return End(get_many, [case.message] * BATCH, BATCH, queue.stop)
    socket = bare_socket(zmq.PULL, addr, create)
    if rival == PYZMQ:
        return End(socket.recv, case.data, 1, socket.close)
    decode = case.codec.decode

    def get() -> Any:
        return decode(socket.recv())

    return End(get, case.message, 1, socket.close)


class Pusher:
    """A worker's part: it connects, and sends as fast as it can."""

    def __init__(self, rival: str, case: str, addr: str) -> None:
        self._end = push_end(rival, make_cases()[case], addr, False)

    def send(self, messages: int) -> float:
        """Send so many messages, in whole batches; return the thread's CPU seconds for each."""
        put, value = self._end.call, self._end.value
        start = thread_time()
        for _ in repeat(None, messages // self._end.messages):
            put(value)
        return (thread_time() - start) / messages

    def close(self) -> None:
        self._end.close()


class Puller:
    """A worker's part: it binds, and receives as fast as it can."""

    def __init__(self, rival: str, case: str, addr: str) -> None:
        self._end = pull_end(rival, make_cases()[case], addr, True)

    def check(self, messages: int) -> None:
        """Receive messages, and see that they are what was sent."""
        for _ in repeat(None, messages // self._end.messages):
            if (value := self._end.call()) != self._end.value:
                raise ValueError(f"expected {self._end.value!r}, got {value!r}")

    def receive(self, messages: int) -> tuple[float, float]:
        """Receive so many messages.

        Returns:
            The messages per second, from the first to the last, and the thread's CPU seconds for
            each.
        """
        get = self._end.call
        calls = messages // self._end.messages - 1
        get()
        start, cpu_start = perf_counter(), thread_time()
        for _ in repeat(None, calls):
            get()
        elapsed, cpu = perf_counter() - start, thread_time() - cpu_start
        rest = calls * self._end.messages
        return rest / elapsed, cpu / rest

    def close(self) -> None:
        self._end.close()

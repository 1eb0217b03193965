"""How many messages a second a coroutine takes from a loaded socket."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import repeat
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import zmq
import zmq.asyncio
from msgen.runtime.queues import HIGH_WATER_MARK, ZmqAsyncPullQueue

from ..output import Report
from ..timing import in_turns, ratio
from .cases import SMALL, make_cases
from .ends import MSGEN, PYZMQ, Pusher, fresh_address
from .processes import Worker, close_parts

RECV = "zmq.asyncio"
RECV_DECODE = "zmq.asyncio + codec"

LOOPS = ("asyncio", "uvloop")

_WARM_UP = 500


_COLUMNS = {
    "loop": "{loop}",
    "way": "{rival}",
    "messages/s": "{messages_per_s:,.0f}",
    "x zmq.asyncio": "{ratio:.1f}",
}


class AsyncPuller:
    """A worker's part: it binds, and receives as fast as its loop lets it."""

    def __init__(self, rival: str, loop: str, addr: str) -> None:
        self._rival = rival
        self._addr = addr
        self._loop = _new_loop(loop)
        self._get, self._stop = self._loop.run_until_complete(self._start())

    async def _start(
        self,
    ) -> tuple[Callable[[], Awaitable[object]], Callable[[], object]]:
        codec = make_cases()[SMALL].codec
        if self._rival == MSGEN:
            queue = ZmqAsyncPullQueue(self._addr, True, codec)
            return queue.get, queue.stop
        socket = _context().socket(zmq.PULL)
        socket.set_hwm(HIGH_WATER_MARK)
        socket.linger = 0
        socket.bind(self._addr)
        if self._rival == RECV:
            return socket.recv, socket.close

        async def get() -> object:
            return codec.decode(await socket.recv())

        return get, socket.close

    def receive(self, messages: int) -> float:
        """Receive so many messages; return the messages per second, from the first to the last."""
        return self._loop.run_until_complete(self._receive(messages))

    async def _receive(self, messages: int) -> float:
        get = self._get
        await get()
        start = perf_counter()
        for _ in repeat(None, messages - 1):
            await get()
        return (messages - 1) / (perf_counter() - start)

    def close(self) -> None:
        if not self._loop.is_closed():
            self._loop.run_until_complete(self._end())
            self._loop.close()

    async def _end(self) -> None:
        self._stop()


@cache
def _context() -> zmq.asyncio.Context:
    return zmq.asyncio.Context()


def _new_loop(name: str) -> asyncio.AbstractEventLoop:
    maker: Any = import_module(name)
    loop: asyncio.AbstractEventLoop = maker.new_event_loop()
    return loop


def measure_async(
    report: Report, players: Sequence[Worker], folder: Path, messages: int
) -> None:
    """Measure all rivals in turns, on each loop that is installed.

    Args:
        players: the sender, which is a bare socket for all, and the receiver.
        messages: of one measurement.
    """
    loops = [name for name in LOOPS if find_spec(name)]
    keys = [(loop, rival) for loop in loops for rival in (RECV, RECV_DECODE, MSGEN)]
    rates = in_turns(
        keys, report.rounds, lambda key: _run(players, folder, *key, messages)
    )
    rows = []
    for loop, rival in keys:
        times = ratio(rates[loop, rival], rates[loop, RECV])
        row = {"loop": loop, "rival": rival, "ratio": times}
        rows.append(row | {"messages_per_s": median(rates[loop, rival])})
        if rival == MSGEN:
            title = f"asynchronous get on {loop}: times zmq.asyncio's rate"
            report.target(title, times, least=8.0)
    report.table(
        "async",
        f"asynchronous pull: {SMALL} messages of a bare sending socket, awaited one by one",
        _COLUMNS,
        rows,
    )


def _run(
    players: Sequence[Worker], folder: Path, loop: str, rival: str, messages: int
) -> float:
    sender, receiver = players
    addr = fresh_address(folder)
    receiver.open(AsyncPuller, rival, loop, addr)
    sender.open(Pusher, PYZMQ, SMALL, addr)
    for count in (_WARM_UP, messages):
        receiver.begin("receive", count)
        sender.ask("send", count)
        rate: float = receiver.result()
    close_parts(players)
    return rate

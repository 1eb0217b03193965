"""The pools that are measured, and the ends of queues that face them."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

from msgen.runtime.launch import WorkerPool
from msgen.runtime.queues import ZmqPullQueue
from queue_cases import BATCH, SMALL, make_cases
from queue_ends import BATCHES, MSGEN, push_end

RANKS = (1, 2, 4)
_CODEC = "msgen.generated.tokenizer:CODEC"
_MOST = 4096


@contextmanager
def pools(
    folder: Path, limits: tuple[int, ...]
) -> Iterator[dict[tuple[int, int], WorkerPool]]:
    """Start a pool with a null handler for each number of ranks and each limit of a step.

    They are idle unless they are measured: a rank that waits takes no time.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["msgen.runtime.launch", "msgen.generated.tokenizer"]
    )
    with ExitStack() as stack:
        yield {
            (ranks, limit): stack.enter_context(
                WorkerPool(
                    "worker_handlers:Null",
                    replies=replies_of(folder, ranks, limit),
                    request_codec=_CODEC,
                    reply_codec=_CODEC,
                    ranks=ranks,
                    max_step_messages=limit,
                    bind_replies=True,
                    start_method="forkserver",
                )
            )
            for limit in limits
            for ranks in RANKS
        }


def replies_of(folder: Path, ranks: int, limit: int) -> str:
    """Return where the replies of a pool are."""
    return f"ipc://{folder}/replies-{ranks}-{limit}"


class Sender:
    """A worker's part: it sends requests to a pool as fast as it can."""

    def __init__(self, batches: bool, addr: str) -> None:
        case = make_cases()[SMALL]
        self._end = push_end(BATCHES if batches else MSGEN, case, addr, False)

    def send(self, messages: int) -> None:
        for _ in range(messages // self._end.messages):
            self._end.put(self._end.value)

    def close(self) -> None:
        self._end.close()


class Receiver:
    """A worker's part: it receives the replies of a pool, however they are batched."""

    def __init__(self, addr: str) -> None:
        self._queue: ZmqPullQueue[Any] = ZmqPullQueue(
            addr, False, make_cases()[SMALL].codec
        )

    def receive(self, messages: int) -> float:
        """Receive so many messages; return how many a second, from the first on."""
        expected = make_cases()[SMALL].message
        first = self._queue.get_many(BATCH)
        if any(each != expected for each in first):
            raise ValueError(f"expected {expected!r}, got {first!r}")
        start, got = perf_counter(), len(first)
        while got < messages:
            got += len(self._queue.get_many(_MOST))
        return (got - len(first)) / (perf_counter() - start)

    def close(self) -> None:
        self._queue.stop()


__all__ = ["BATCH", "RANKS", "Receiver", "Sender", "pools", "replies_of"]

"""Pools of workers for tests, with a client at their queues."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from msgen.generated import backend, tokenizer
from msgen.runtime import WorkerError
from msgen.runtime.launch import WorkerPool
from msgen.runtime.queues import HIGH_WATER_MARK, ZmqPullQueue, ZmqPushQueue
from msgen.runtime.sockets import ipc_address
from processes import CONTEXT, GENEROUS

CODECS: dict[str, Any] = {
    "request_codec": "msgen.generated.backend:CODEC",
    "reply_codec": "msgen.generated.tokenizer:CODEC",
}
assert CONTEXT.get_start_method() == "forkserver"


@dataclass(frozen=True)
class Served:
    """A pool, the sender of its requests and the receiver of its replies."""

    pool: WorkerPool
    push: ZmqPushQueue[Any]
    pull: ZmqPullQueue[Any]

    def ask(self, *messages: Any) -> None:
        for message in messages:
            self.push.put(message)

    def replies(self, count: int) -> list[Any]:
        """Return the next replies, batches opened; fail where the pool has."""
        found: list[Any] = []
        deadline = time.monotonic() + GENEROUS
        while len(found) < count:
            assert time.monotonic() < deadline, f"{len(found)} of {count} replies came"
            if self.pull.empty():
                self.pool.check()
                time.sleep(0.0005)
            else:
                found += self.pull.get_many(count - len(found), timeout=0)
        return found

    def failure(self) -> WorkerError:
        """Wait until the pool has failed, and return why."""
        try:
            self.pool.wait(GENEROUS)
        except WorkerError as error:
            return error
        raise AssertionError("the pool has not failed")


@contextmanager
def serving(handler: str, run: str, **options: Any) -> Iterator[Served]:
    """Start a pool and connect to it; it must have ended in order, or been seen to fail."""
    options.setdefault("start_method", "forkserver")
    options.setdefault("ready_timeout", GENEROUS)
    options.setdefault("stop_timeout", GENEROUS)
    security = options.pop("security", None)
    replies = ipc_address("replies", run)
    with ZmqPullQueue(
        replies, create=True, codec=tokenizer.CODEC, timeout=GENEROUS
    ) as pull:
        pool = WorkerPool(f"handlers:{handler}", replies=replies, **CODECS, **options)
        pool.start()
        try:
            with ZmqPushQueue(
                pool.addr,
                create=False,
                codec=backend.CODEC,
                hwm=options.get("hwm", HIGH_WATER_MARK),
                timeout=GENEROUS,
                security=security,
            ) as push:
                yield Served(pool, push, pull)
        finally:
            pool.stop()

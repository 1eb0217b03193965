"""Killed ranks and killed parents: the pool says who it was, and nothing is left."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from children import user
from handlers import TROUBLE, token
from msgen.generated import backend, tokenizer
from msgen.runtime import QueueFull, WorkerError
from msgen.runtime.launch import WorkerPool
from msgen.runtime.queues import ZmqPullQueue, ZmqPushQueue
from msgen.runtime.sockets import ipc_address
from pools import CODECS
from processes import GENEROUS, is_alive, until
from sizes import size

ROUNDS = size("MSGEN_KILLS", 2, 25)
"""Rounds of each kind; `CONTRIBUTING.md` has the long run."""
TESTS = Path(__file__).parents[1] / "support"

pytestmark = pytest.mark.usefixtures("run_dir")


def shared_memory_of(pids: list[int]) -> list[str]:
    return [
        path.name
        for path in Path("/dev/shm").iterdir()
        if any(str(pid) in path.name for pid in pids)
    ]


class Pool(WorkerPool):
    def wait_quietly(self) -> bool:
        """Say whether it has ended, with an error or without."""
        try:
            return self.wait(0)
        except WorkerError:
            return True


class Traffic(threading.Thread):
    """A client that sends and receives until the pool has failed.

    Every tenth message has ``large`` tokens: with millions of them a step spends its time on its way
    from rank 0 to the others.
    """

    def __init__(self, pool: Pool, replies: str, large: int) -> None:
        super().__init__()
        self._pool = pool
        self._large = large
        self._replies = replies
        self.flowing = threading.Event()

    def run(self) -> None:
        with (
            ZmqPullQueue(self._replies, create=True, codec=tokenizer.CODEC) as pull,
            ZmqPushQueue(
                self._pool.addr, create=False, codec=backend.CODEC, linger=0
            ) as push,
        ):
            sent = 0
            while not self._pool.wait_quietly():
                try:
                    push.put(
                        user(sent, self._large if sent % 10 == 0 else 3), timeout=0.01
                    )
                    sent += 1
                except QueueFull:
                    pass
                while not pull.empty():
                    pull.get()
                    self.flowing.set()


LARGE = {"step": 20_000, "broadcast": 2_000_000}
"""Tokens of a large message, for the moments that come under way."""


@pytest.mark.parametrize("moment", ["start", "idle", "step", "broadcast"])
def test_whichever_rank_is_killed_the_pool_names_it_and_all_ends(moment: str) -> None:
    chance = random.Random(moment)
    longest = 0.0
    for number in range(ROUNDS):
        ranks = chance.choice([2, 3] if moment == "broadcast" else [1, 2, 3])
        victim = chance.randrange(ranks)
        error, seconds, pool = kill(moment, f"{moment}{number}", ranks, victim, chance)
        longest = max(longest, seconds)
        assert (error.rank, error.type, error.exit_code) == (victim, "Exited", -9), (
            error
        )
        assert not any(map(is_alive, pool.pids))
        assert shared_memory_of(pool.pids) == []
    print(
        f"\n{moment}: {ROUNDS} ranks killed, known and all ended after {longest:.2f} s at most"
    )


def kill(
    moment: str, run: str, ranks: int, victim: int, chance: random.Random
) -> tuple[WorkerError, float, WorkerPool]:
    """Kill a rank at a moment; return the pool's error, and how long all took to end."""
    replies = ipc_address("replies", run)
    pool = Pool(
        "handlers:Together",
        replies=replies,
        ranks=ranks,
        start_method="forkserver",
        ready_timeout=GENEROUS,
        **CODECS,
    )
    killed_at = 0.0

    def shoot() -> None:
        nonlocal killed_at
        until(lambda: len(pool.pids) > victim and pool.pids[victim])
        time.sleep(chance.random() * 0.2)
        killed_at = time.monotonic()
        os.kill(pool.pids[victim], signal.SIGKILL)

    shooter = threading.Thread(target=shoot)
    traffic = Traffic(pool, replies, LARGE.get(moment, 0))
    with pytest.raises(WorkerError) as caught:
        if moment == "start":
            shooter.start()
        with pool:
            if moment in LARGE:
                traffic.start()
                assert traffic.flowing.wait(GENEROUS)
            if moment != "start":
                shooter.start()
            pool.wait(GENEROUS)
    ended_at = time.monotonic()
    shooter.join()
    if moment in LARGE:
        traffic.join()
    return caught.value, ended_at - killed_at, pool


@dataclass
class Parent:
    """A program that runs a pool, and a mark by which its processes are found."""

    process: subprocess.Popen[str]
    mark: str
    replies: str

    def ready(self) -> tuple[str, list[int]]:
        """Wait until it is; return where requests go, and the ranks' process ids."""
        assert self.process.stdout is not None
        addr, pids = json.loads(self.process.stdout.readline())
        return addr, pids

    def all_of_it(self) -> list[int]:
        """Return the processes that are left of it: the ranks, and all helpers."""
        return [
            int(path.name)
            for path in Path("/proc").iterdir()
            if path.name.isdecimal() and self._is_of_it(path)
        ]

    def _is_of_it(self, path: Path) -> bool:
        try:
            environment = (path / "environ").read_bytes()
        except OSError:
            return False
        return self.mark.encode() in environment and is_alive(int(path.name))


@contextmanager
def parent(
    handler: str, ranks: int, *, start_method: str = "spawn", **options: Any
) -> Iterator[Parent]:
    mark = f"msgen-mark-{os.getpid()}-{time.monotonic_ns()}"
    replies = ipc_address("replies", mark)
    command = [
        sys.executable,
        str(TESTS / "pool_parent.py"),
        handler,
        str(ranks),
        replies,
    ]
    process = subprocess.Popen(
        [*command, start_method, json.dumps(options)],
        env={**os.environ, "MSGEN_TEST_MARK": mark},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    found = Parent(process, mark, replies)
    try:
        with process:
            try:
                yield found
            finally:
                process.kill()
    finally:
        left = found.all_of_it()
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        assert left == []


def kill_and_wait(found: Parent) -> float:
    """Kill the parent; return the seconds until nothing of it is left."""
    found.process.kill()
    begin = time.monotonic()
    until(lambda: found.all_of_it() == [])
    return time.monotonic() - begin


@pytest.mark.parametrize("start_method", ["spawn", "forkserver"])
def test_no_rank_outlives_its_parent(start_method: str) -> None:
    with parent("Together", 2, start_method=start_method) as found:
        _, pids = found.ready()
        assert set(pids) <= set(found.all_of_it())
        seconds = kill_and_wait(found)
        assert shared_memory_of([*pids, found.process.pid]) == []
    print(f"\nall ended {seconds:.2f} s after their parent was killed")


@pytest.mark.long
def test_a_parent_killed_while_ranks_start_leaves_nothing() -> None:
    chance = random.Random(0)
    for _ in range(max(2, ROUNDS // 4)):
        with parent("Together", 2) as found:
            # Its guardian is the first process that it starts.
            until(lambda found=found: len(found.all_of_it()) > 1)  # type: ignore[misc]
            time.sleep(chance.random() * 3)
            kill_and_wait(found)


def test_a_rank_that_holds_pythons_lock_does_not_outlive_its_parent() -> None:
    with parent("Troubled", 2, kind="hang_with_the_lock") as found:
        addr, _ = found.ready()
        with ZmqPullQueue(found.replies, create=True, codec=tokenizer.CODEC) as pull:
            with ZmqPushQueue(addr, create=False, codec=backend.CODEC) as push:
                push.put(backend.AbortBackendMsg(1))
                assert pull.get(timeout=GENEROUS) == token(1)
                push.put(backend.AbortBackendMsg(TROUBLE))
            kill_and_wait(found)


def test_processes_that_a_rank_has_started_end_with_it() -> None:
    with parent("Nested", 1) as found:
        _, pids = found.ready()
        assert len(set(found.all_of_it()) - {found.process.pid, *pids}) >= 2
        kill_and_wait(found)
    with (
        pytest.raises(WorkerError),
        Pool(
            "handlers:Nested",
            replies=ipc_address("replies", "nested"),
            start_method="forkserver",
            **CODECS,
        ) as pool,
    ):
        child = children_of(pool.pids[0])[0]
        os.kill(pool.pids[0], signal.SIGKILL)
        until(lambda: not is_alive(child))
        pool.wait(GENEROUS)


def children_of(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(each) for each in text.split()]

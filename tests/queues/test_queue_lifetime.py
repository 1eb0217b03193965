"""Whose a queue is and when it ends: threads, forks, stops and exits."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from children import (
    exit_without_stop,
    put_until_full_and_stop,
    stop_unsent,
    user,
)
from msgen.generated import backend
from msgen.runtime import (
    QueueClosed,
    QueueEmpty,
    QueueFull,
    WrongProcess,
    WrongThread,
)
from msgen.runtime.queues import ZmqPullQueue, ZmqPushQueue
from processes import CONTEXT, GENEROUS, answer, finished, running

USES: dict[str, Callable[[Any], object]] = {
    "get": lambda queue: queue.get(timeout=0),
    "get_many": lambda queue: queue.get_many(1, 0),
    "get_raw": lambda queue: queue.get_raw(0),
    "drain": lambda queue: queue.drain(),
    "empty": lambda queue: queue.empty(),
    "stats": lambda queue: queue.stats,
}
PUTS: dict[str, Callable[[Any], object]] = {
    "put": lambda queue: queue.put(backend.ExitMsg(), 0),
    "put_many": lambda queue: queue.put_many([backend.ExitMsg()], 0),
    "put_raw": lambda queue: queue.put_raw(b"x", 0),
    "stats": lambda queue: queue.stats,
}


def in_thread(call: Callable[[], object]) -> BaseException | None:
    """Call in another thread and return what it raised."""
    caught: list[BaseException] = []

    def body() -> None:
        try:
            call()
        except BaseException as error:
            caught.append(error)

    thread = threading.Thread(target=body, name="other")
    thread.start()
    thread.join(GENEROUS)
    return caught[0] if caught else None


@pytest.mark.parametrize("use", [*USES, "stop"])
def test_a_second_thread_is_refused_by_name(pull: ZmqPullQueue[Any], use: str) -> None:
    calls: dict[str, Callable[[Any], object]] = {
        **USES,
        "stop": lambda queue: queue.stop(),
    }
    error = in_thread(lambda: calls[use](pull))
    assert isinstance(error, WrongThread)
    assert "made in thread 'MainThread' and is used in 'other'" in str(error)
    with pytest.raises(QueueEmpty):
        pull.get(timeout=0)


@pytest.mark.parametrize("use", PUTS)
def test_a_second_thread_cannot_put(addr: str, use: str) -> None:
    with ZmqPushQueue(addr, create=False, codec=backend.CODEC) as push:
        assert isinstance(in_thread(lambda: PUTS[use](push)), WrongThread)


def test_each_thread_may_have_a_queue_of_its_own(
    addr: str, pull: ZmqPullQueue[Any]
) -> None:
    def send() -> None:
        with ZmqPushQueue(addr, create=False, codec=backend.CODEC) as queue:
            queue.put(backend.AbortBackendMsg(1))

    assert in_thread(send) is None
    assert pull.get(timeout=GENEROUS) == backend.AbortBackendMsg(1)


@pytest.mark.parametrize("use", USES)
def test_a_stopped_queue_says_so(addr: str, use: str) -> None:
    queue = ZmqPullQueue(addr, create=True, codec=backend.CODEC)
    queue.stop()
    queue.stop()
    assert in_thread(queue.stop) is None
    with pytest.raises(QueueClosed, match="the queue is stopped; make a new one"):
        USES[use](queue)


@pytest.mark.parametrize("use", PUTS)
def test_a_stopped_queue_takes_nothing(addr: str, use: str) -> None:
    queue = ZmqPushQueue(addr, create=False, codec=backend.CODEC)
    queue.stop()
    with pytest.raises(QueueClosed):
        PUTS[use](queue)


def test_an_address_is_free_as_soon_as_its_queue_is_stopped(addr: str) -> None:
    for address in (addr, "tcp://127.0.0.1:0"):
        where = address
        for _ in range(20):
            with ZmqPullQueue(where, create=True, codec=backend.CODEC) as queue:
                where = queue.addr
    assert not Path(addr.removeprefix("ipc://")).exists()


def test_a_queue_that_is_dropped_warns_and_is_closed(addr: str) -> None:
    queue = ZmqPushQueue(addr, create=True, codec=backend.CODEC)
    with pytest.warns(ResourceWarning, match="ZmqPushQueue ipc://.* was not stopped"):
        del queue
        gc.collect()
    assert not Path(addr.removeprefix("ipc://")).exists()


def in_fork(call: Callable[[], object]) -> bytes:
    """Call in a forked child, and return the name of what it raised, and its text."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = b"nothing"
        try:
            call()
        except BaseException as error:
            said = f"{type(error).__name__}: {error}".encode()
        finally:
            os.write(writing, said)
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


@pytest.mark.parametrize("use", USES)
def test_a_forked_child_cannot_use_its_parents_queue(
    addr: str, pull: ZmqPullQueue[Any], use: str
) -> None:
    said = in_fork(lambda: USES[use](pull)).decode()
    assert said.startswith(WrongProcess.__name__)
    assert f"made in process {os.getpid()}, before this one was forked" in said
    with ZmqPushQueue(addr, create=False, codec=backend.CODEC) as push:
        push.put(backend.ExitMsg())
        assert pull.get(timeout=GENEROUS) == backend.ExitMsg()


def test_a_forked_child_has_queues_of_its_own(
    addr: str, pull: ZmqPullQueue[Any]
) -> None:
    def send() -> None:
        with ZmqPushQueue(addr, create=False, codec=backend.CODEC) as queue:
            queue.put(backend.AbortBackendMsg(1))
        from msgen.runtime.sockets import context

        context.close_all()  # os._exit would not.

    assert in_fork(send) == b"nothing"
    assert pull.get(timeout=GENEROUS) == backend.AbortBackendMsg(1)
    assert Path(addr.removeprefix("ipc://")).exists()


FORKED_AND_LEFT = """
import os, sys
from msgen.generated import backend
from msgen.runtime.queues import ZmqPullQueue, ZmqPushQueue
from msgen.runtime.sockets import Curve
import zmq
queue = ZmqPullQueue(sys.argv[1], create=True, codec=backend.CODEC)
secret, client = zmq.curve_keypair()[1], zmq.curve_keypair()[0]
guarded = ZmqPullQueue("tcp://127.0.0.1:0", create=True, codec=backend.CODEC,
                       security=Curve.server(secret, clients=[client]))
child = os.fork()
if child == 0:
    sys.exit(0)  # the ordinary way, through atexit
_, status = os.waitpid(child, 0)
assert status == 0, status
with ZmqPushQueue(sys.argv[1], create=False, codec=backend.CODEC) as push:
    push.put(backend.ExitMsg())
    assert queue.get(timeout=60) == backend.ExitMsg()
print("the parent goes on")
"""


def script(
    text: str, *arguments: str, warnings: tuple[str, ...] = ("-W", "error")
) -> subprocess.CompletedProcess[str]:
    """Run a script to its end, with its warnings as errors."""
    return subprocess.run(
        [sys.executable, *warnings, "-c", text, *arguments],
        capture_output=True,
        text=True,
        timeout=GENEROUS,
        check=False,
    )


def test_a_forked_child_that_exits_leaves_its_parents_queues_alone(addr: str) -> None:
    # pyzmq calls the parent's sockets unclosed in the child, which must not close them.
    done = script(FORKED_AND_LEFT, addr, warnings=())
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "the parent goes on\n",
        "",
    )
    assert not Path(addr.removeprefix("ipc://")).exists()


def test_messages_on_their_way_out_are_sent_after_stop(
    addr: str,
) -> None:
    mine, theirs = CONTEXT.Pipe()
    with running(stop_unsent, addr, 60.0, theirs) as process:
        assert mine.poll(GENEROUS)
        assert answer(mine) == "stopping"
        with ZmqPullQueue(addr, create=True, codec=backend.CODEC) as pull:
            for uid in range(10):
                assert pull.get(timeout=GENEROUS) == user(uid, 100_000)
        finished(process)


def test_a_slow_receiver_gets_all_of_a_sender_that_stops(addr: str) -> None:
    """libzmq alone drops what its I/O thread has taken and cannot write (libzmq #4660)."""
    mine, theirs = CONTEXT.Pipe()
    with (
        ZmqPullQueue(addr, create=True, codec=backend.CODEC, hwm=1) as pull,
        running(put_until_full_and_stop, addr, theirs) as process,
    ):
        assert mine.poll(GENEROUS)
        put = answer(mine)
        assert put > 100
        for uid in range(put):
            assert pull.get(timeout=GENEROUS) == backend.AbortBackendMsg(uid)
        finished(process)
        assert pull.empty()


def test_queues_inside_a_process_need_no_outflow() -> None:
    with (
        ZmqPullQueue("inproc://here", create=True, codec=backend.CODEC) as pull,
        ZmqPushQueue("inproc://here", False, codec=backend.CODEC, linger=60) as push,
    ):
        push.put(backend.ExitMsg())
        assert push.drain(timeout=0) is True
        assert pull.get(GENEROUS) == backend.ExitMsg()


def test_drain_tells_when_all_has_left(addr: str) -> None:
    with ZmqPushQueue(addr, create=False, codec=backend.CODEC, linger=0) as push:
        assert push.drain(timeout=0) is True  # of nothing
        push.put(user(1, 500_000))
        assert push.drain(timeout=0.05) is False
        with ZmqPullQueue(addr, create=True, codec=backend.CODEC, hwm=1) as pull:
            assert push.drain(timeout=GENEROUS) is True
            with pytest.raises(QueueFull):
                for _ in range(1000):
                    push.put(user(2, 500_000), timeout=0.01)
            assert push.drain(timeout=0.05) is False
            while push.stats.messages > pull.stats.messages:
                pull.get(timeout=GENEROUS)
            assert push.drain(timeout=GENEROUS) is True


def test_a_sender_that_nobody_listens_to_says_what_it_drops(
    addr: str, caplog: pytest.LogCaptureFixture
) -> None:
    for linger, warnings in ((0.05, 1), (0, 0)):
        caplog.clear()
        with ZmqPushQueue(addr, False, codec=backend.CODEC, linger=linger) as push:
            push.put(backend.ExitMsg())
        assert len(caplog.records) == warnings
    with ZmqPushQueue(addr, create=False, codec=backend.CODEC, linger=60):
        pass  # Nothing was put, so nothing is waited for.


def test_without_a_receiver_unsent_messages_keep_nobody_waiting(addr: str) -> None:
    mine, theirs = CONTEXT.Pipe()
    with running(stop_unsent, addr, 0.2, theirs) as process:
        assert answer(mine) == "stopping"
        assert 0.2 <= answer(mine) < 10
        finished(process)


@pytest.mark.parametrize("create", [True, False])
def test_an_exit_without_stop_sends_what_was_put_and_tidies_up(
    addr: str, create: bool
) -> None:
    with (
        running(exit_without_stop, addr, create, 50) as process,
        ZmqPullQueue(addr, create=not create, codec=backend.CODEC) as pull,
    ):
        for uid in range(50):
            assert pull.get(timeout=GENEROUS) == user(uid, 20_000)
        finished(process)
    assert not Path(addr.removeprefix("ipc://")).exists()


EXITS = {
    "falls off its end": "",
    "sys.exit": "sys.exit(0)",
    "an exception": "raise SystemExit(0)",
    "a thread that waits": """
import threading
def wait():
    with ZmqPullQueue(sys.argv[1] + "2", create=True, codec=backend.CODEC) as other:
        ready.set()
        try:
            other.get()
        except QueueClosed as error:
            print(error)
ready = threading.Event()
threading.Thread(target=wait, daemon=True).start()
ready.wait()
""",
    "a thread that has ended": """
import threading
def leave():
    global other
    other = ZmqPullQueue(sys.argv[1] + "2", create=True, codec=backend.CODEC)
thread = threading.Thread(target=leave)
thread.start()
thread.join()
""",
    "an event loop that was left": """
import asyncio
from msgen.runtime.queues import ZmqAsyncPullQueue
async def main():
    global other
    other = ZmqAsyncPullQueue(sys.argv[1] + "2", create=True, codec=backend.CODEC)
    try:
        await asyncio.wait_for(other.get(), 0.01)
    except asyncio.TimeoutError:
        pass
asyncio.run(main())
""",
}


@pytest.mark.parametrize("how", EXITS)
def test_every_exit_is_bounded_and_leaves_no_file(addr: str, how: str) -> None:
    text = f"""
import logging, sys
from msgen.generated import backend
from msgen.runtime import QueueClosed
from msgen.runtime.queues import ZmqPullQueue, ZmqPushQueue
queue = ZmqPullQueue(sys.argv[1], create=True, codec=backend.CODEC)
nobody = ZmqPushQueue(sys.argv[1] + "3", create=False, codec=backend.CODEC, linger=0.2)
nobody.put(backend.ExitMsg())
logging.disable()  # of the message that is dropped
{EXITS[how]}
"""
    done = script(text, addr)
    assert (done.returncode, done.stderr) == (0, "")
    if how == "a thread that waits":
        assert "the process is exiting" in done.stdout
    folder = Path(addr.removeprefix("ipc://")).parent
    assert list(folder.iterdir()) == []


def test_ctrl_c_ends_a_wait(addr: str) -> None:
    text = """
import sys, threading, os, signal
from msgen.generated import backend
from msgen.runtime.queues import ZmqPullQueue
with ZmqPullQueue(sys.argv[1], create=True, codec=backend.CODEC) as queue:
    for timeout in (None, 3600):
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            queue.get(timeout)
        except KeyboardInterrupt:
            print("interrupted")
"""
    done = script(text, addr)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n" * 2, "")


def test_a_timeout_holds_while_signals_arrive(addr: str) -> None:
    text = """
import sys, signal, time
from msgen.generated import backend
from msgen.runtime import QueueEmpty
from msgen.runtime.queues import ZmqPullQueue
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
with ZmqPullQueue(sys.argv[1], create=True, codec=backend.CODEC) as queue:
    try:
        queue.get(timeout=0.3)
    except QueueEmpty:
        print("empty")
signal.setitimer(signal.ITIMER_REAL, 0)
"""
    done = script(text, addr)
    assert (done.returncode, done.stdout, done.stderr) == (0, "empty\n", "")


def test_stop_returns_at_once_whatever_is_unsent(addr: str) -> None:
    queue = ZmqPushQueue(addr, create=False, codec=backend.CODEC)
    queue.put(user(1, 100_000))
    start = time.monotonic()
    queue.stop(linger=0)
    # Loading apart, it waits for nothing: ten seconds are no measurement but a bound.
    assert time.monotonic() - start < 10

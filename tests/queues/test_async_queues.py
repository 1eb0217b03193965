"""Asynchronous queues: cancelling, fairness, order, and other event loops."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
import uvloop
from children import send_numbers, user
from msgen.generated import backend, tokenizer
from msgen.runtime import (
    DecodeError,
    EncodeError,
    QueueClosed,
    QueueEmpty,
    QueueFull,
    WrongThread,
)
from msgen.runtime.queues import (
    ZmqAsyncPullQueue,
    ZmqAsyncPushQueue,
    ZmqPullQueue,
    ZmqPushQueue,
)
from msgen.runtime.queues.frames import plain_frames
from processes import GENEROUS, finished, running

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """Run a coroutine to its end, on each kind of event loop."""
    loop = LOOPS[request.param]()
    loop.set_exception_handler(lambda _, context: errors.append(context))
    errors: list[Any] = []

    def run_it(main: Coroutine[Any, Any, None]) -> None:
        loop.run_until_complete(asyncio.wait_for(main, GENEROUS))
        assert errors == []

    try:
        yield run_it
    finally:
        loop.close()


def test_messages_travel_both_ways(addr: str, run: Run) -> None:
    async def main() -> None:
        async with (
            ZmqAsyncPullQueue(addr, create=True, codec=backend.CODEC) as pull,
            ZmqAsyncPushQueue(addr, create=False, codec=backend.CODEC) as push,
        ):
            for tokens in (3, 50_000):
                getting = asyncio.ensure_future(pull.get(GENEROUS))
                await asyncio.sleep(0)
                msg = user(1, tokens)
                await push.put(msg)
                msg.input_ids.zero_()
                assert await getting == user(1, tokens)
            msgs: list[Any] = [user(1, 3), user(2, 50_000), backend.ExitMsg()]
            await push.put_many(msgs)
            assert await pull.get_many(2) == msgs[:2]
            assert await pull.get_many(2) == msgs[2:]
            await push.put_many(msgs)
            await push.put(user(9, 50_000))
            raw = await pull.get_raw()
            expected = backend.encode_frames(backend.BatchBackendMsg(msgs))
            assert plain_frames(raw) == expected
            frames = await pull.get_raw()
            await push.put_raw(frames)
            assert await pull.get() == pull.decode(frames) == user(9, 50_000)
            assert await push.drain(GENEROUS)
            assert pull.empty()
            assert await pull.drain() == []
            assert push.stats.messages == pull.stats.messages == 6

    run(main())


def test_timeouts_lose_nothing(addr: str, run: Run) -> None:
    async def main() -> None:
        async with (
            ZmqAsyncPullQueue(addr, True, codec=backend.CODEC, timeout=0.01) as pull,
            ZmqAsyncPushQueue(addr, False, codec=backend.CODEC) as push,
        ):
            with pytest.raises(QueueEmpty, match=r"within 0\.01 s"):
                await pull.get()
            with pytest.raises(QueueEmpty, match="within 0 s"):
                await pull.get_many(1, timeout=0)
            await push.put(backend.ExitMsg())
            assert await pull.get(GENEROUS) == backend.ExitMsg()

    run(main())


def test_ten_thousand_cancelled_gets_lose_and_double_nothing(
    addr: str, run: Run
) -> None:
    """Cancelled at random points, by wait_for, by cancel, and by their own timeout."""
    count = 20_000

    async def main() -> None:
        chance = random.Random(5)
        taken: list[int] = []
        given_up = 0
        async with ZmqAsyncPullQueue(
            addr, create=True, codec=tokenizer.CODEC, hwm=20
        ) as pull:
            with running(send_numbers, addr, 0, count, 5, False) as sender:
                while len(taken) < count:
                    kind = chance.randrange(3) if given_up < 10_000 else 3
                    pause = chance.random() * 0.0004
                    try:
                        if kind == 0:
                            msg = await asyncio.wait_for(pull.get(), pause)
                        elif kind == 1:
                            task = asyncio.ensure_future(pull.get())
                            for _ in range(chance.randrange(4)):
                                await asyncio.sleep(0)
                            task.cancel()
                            msg = await task
                        elif kind == 2:
                            msg = await pull.get(timeout=pause)
                        else:
                            msg = await pull.get(timeout=GENEROUS)
                    except (asyncio.TimeoutError, asyncio.CancelledError, QueueEmpty):
                        given_up += 1
                    else:
                        taken.append(msg.uid)  # type: ignore[union-attr]
                    if given_up < 10_000 and len(taken) > count // 2:
                        # Messages are scarce from here on, so that gets do wait.
                        await asyncio.sleep(0)
                finished(sender)
            assert taken == list(range(count))
            assert pull.stats.messages == count
            while given_up < 10_000:
                with pytest.raises((asyncio.TimeoutError, QueueEmpty)):
                    await asyncio.wait_for(pull.get(), chance.random() * 0.0001)
                given_up += 1
            assert pull.empty()

    run(main())


def test_cancelled_puts_are_sent_whole_or_not_at_all(addr: str, run: Run) -> None:
    async def main() -> None:
        chance = random.Random(6)
        async with (
            ZmqAsyncPullQueue(addr, create=True, codec=backend.CODEC, hwm=1) as pull,
            ZmqAsyncPushQueue(addr, create=False, codec=backend.CODEC, hwm=1) as push,
        ):
            sent: list[int] = []
            received: list[int] = []

            async def receive() -> None:
                while True:
                    received.append((await pull.get()).uid)  # type: ignore[union-attr]
                    await asyncio.sleep(0.001)

            receiving = asyncio.ensure_future(receive())
            for uid in range(1_000):
                putting = asyncio.ensure_future(push.put(user(uid, 30_000)))
                for _ in range(chance.randrange(4)):
                    await asyncio.sleep(0)
                if chance.random() < 0.5:
                    putting.cancel()
                try:
                    await putting
                except asyncio.CancelledError:
                    continue
                sent.append(uid)
            assert 0 < len(sent) < 1_000
            while len(received) < len(sent):
                await asyncio.sleep(0.001)
            receiving.cancel()
            assert received == sent
            assert pull.empty()

    run(main())


def test_those_who_wait_are_served_in_order(addr: str, run: Run) -> None:
    async def main() -> None:
        async with (
            ZmqAsyncPullQueue(addr, create=True, codec=backend.CODEC) as pull,
            ZmqAsyncPushQueue(addr, create=False, codec=backend.CODEC) as push,
        ):
            served: list[int] = []

            async def get(number: int) -> None:
                msg = await pull.get(GENEROUS)
                served.append(number)
                assert msg == backend.AbortBackendMsg(len(served) - 1)

            getters = [asyncio.ensure_future(get(number)) for number in range(50)]
            await asyncio.sleep(0)
            for number in (3, 7, 49):
                getters[number].cancel()
            rest = [n for n in range(50) if n not in (3, 7, 49)]
            for uid in range(len(rest)):
                await push.put(backend.AbortBackendMsg(uid))
                pull.empty()  # looks at the socket, and must not take the signal away
            await asyncio.gather(*getters, return_exceptions=True)
            assert served == rest

    run(main())


def test_a_full_queue_makes_coroutines_wait_in_order(addr: str, run: Run) -> None:
    async def main() -> None:
        async with ZmqAsyncPushQueue(addr, True, codec=backend.CODEC, hwm=1) as push:
            with pytest.raises(QueueFull, match=r"within 0\.01 s"):
                await push.put(backend.ExitMsg(), timeout=0.01)
            puts = [
                asyncio.ensure_future(push.put(backend.AbortBackendMsg(uid), GENEROUS))
                for uid in range(2_000)
            ]
            await asyncio.sleep(0)
            async with ZmqAsyncPullQueue(
                addr, create=False, codec=backend.CODEC, hwm=1
            ) as pull:
                for uid in range(2_000):
                    assert await pull.get(GENEROUS) == backend.AbortBackendMsg(uid)
            await asyncio.gather(*puts)

    run(main())


def test_a_busy_queue_leaves_the_loop_its_share(addr: str, run: Run) -> None:
    async def main() -> None:
        async with ZmqAsyncPullQueue(addr, create=True, codec=tokenizer.CODEC) as pull:
            turns = 0

            async def other() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await asyncio.sleep(0)

            with running(send_numbers, addr, 0, 200_000, 1000, False) as sender:
                task = asyncio.ensure_future(other())
                for _ in range(200_000):
                    await pull.get(GENEROUS)
                task.cancel()
                finished(sender)
            # It takes well over 100 ms, of which each millisecond is shared.
            assert turns > 50

    run(main())


def test_bad_messages_and_bad_puts_are_told(addr: str, run: Run) -> None:
    async def main() -> None:
        async with (
            ZmqAsyncPullQueue(addr, create=True, codec=backend.CODEC) as pull,
            ZmqAsyncPushQueue(addr, create=False, codec=backend.CODEC) as push,
        ):
            with pytest.raises(EncodeError):
                await push.put(backend.AbortBackendMsg("x"))  # type: ignore[arg-type]
            await push.put_raw([b"junk", b"more"])
            getting = asyncio.ensure_future(pull.get(GENEROUS))
            with pytest.raises(DecodeError):
                await getting
            await push.put(backend.ExitMsg())
            assert await pull.get(GENEROUS) == backend.ExitMsg()
            assert pull.stats.decode_errors == 1
            await push.put_raw(backend.encode(user(1, 1)))
            await push.put_raw(b"junk")
            await push.drain(GENEROUS)
            first = await pull.drain(timeout=0.5)
            assert first == [user(1, 1)]
            with pytest.raises(DecodeError):
                await pull.drain(timeout=GENEROUS)

    run(main())


def test_stopping_ends_those_who_wait(addr: str, run: Run) -> None:
    async def main() -> None:
        pull = ZmqAsyncPullQueue(addr, create=True, codec=backend.CODEC)
        getters = [asyncio.ensure_future(pull.get()) for _ in range(3)]
        await asyncio.sleep(0.01)
        pull.stop()
        pull.stop()
        for getter in getters:
            with pytest.raises(QueueClosed, match="stopped meanwhile"):
                await getter
        with pytest.raises(QueueClosed):
            await pull.get()

    run(main())


def test_lent_memory_is_waited_for(addr: str, run: Run) -> None:
    async def main() -> None:
        async with (
            ZmqAsyncPushQueue(
                addr, False, codec=backend.CODEC, copy=False, max_lent_bytes=2_000_000
            ) as push,
            ZmqAsyncPullQueue(addr, create=True, codec=backend.CODEC) as pull,
        ):
            for uid in range(20):
                tracker = await push.put(user(uid, 400_000), GENEROUS)
                assert tracker is not None
                last = tracker
                if uid:
                    assert await pull.get(GENEROUS) == user(uid - 1, 400_000)
            assert await pull.get(GENEROUS) == user(19, 400_000)
            last.wait(GENEROUS)

    run(main())


def test_one_queue_serves_several_runs_of_a_loop(addr: str) -> None:
    with (
        ZmqPushQueue(addr, create=True, codec=backend.CODEC) as push,
        ZmqAsyncPullQueue(addr, create=False, codec=backend.CODEC) as pull,
    ):
        for uid in range(3):

            async def one(uid: int) -> None:
                getting = asyncio.ensure_future(pull.get(GENEROUS))
                await asyncio.sleep(0.01)
                push.put(backend.AbortBackendMsg(uid), GENEROUS)
                assert await getting == backend.AbortBackendMsg(uid)

            asyncio.run(one(uid))


def test_another_threads_loop_is_refused(addr: str) -> None:
    with ZmqAsyncPullQueue(addr, create=True, codec=backend.CODEC) as pull:
        caught: list[BaseException] = []

        def elsewhere() -> None:
            try:
                asyncio.run(pull.get(timeout=0))
            except BaseException as error:
                caught.append(error)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join(GENEROUS)
        assert isinstance(caught[0], WrongThread)


def test_blocking_and_asynchronous_ends_go_together(addr: str, run: Run) -> None:
    async def main() -> None:
        async with ZmqAsyncPushQueue(addr, create=True, codec=backend.CODEC) as push:
            with ZmqPullQueue(addr, create=False, codec=backend.CODEC) as pull:
                await push.put(user(1, 3), GENEROUS)
                assert pull.get(GENEROUS) == user(1, 3)

    run(main())

"""Workers: what a handler is given, what becomes of its replies, and of bad messages."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from children import user
from handlers import token
from msgen.generated import backend, tokenizer
from msgen.runtime import DecodeError, PingTimeout, QueueFull
from msgen.runtime.worker.quarantine import DeadLetters, read_dead_letters
from pools import Served, serving
from processes import GENEROUS, until
from sizes import size

REQUESTS = size("MSGEN_REQUESTS", 600, 20_000)
"""Requests of each random run; `CONTRIBUTING.md` has the long run."""


pytestmark = pytest.mark.usefixtures("run_dir")


def requests(count: int) -> Iterator[Any]:
    """Requests of all kinds and sizes, the same ones each time; one in 200 has a frame of its own."""
    chance = random.Random(1)
    for uid in range(count):
        if chance.random() < 0.5:
            yield backend.AbortBackendMsg(uid)
        else:
            yield user(uid, 20_000 if chance.random() < 0.01 else chance.randrange(50))


def arrive_at_random(served: Served, chance: random.Random) -> list[Any]:
    """Send requests one by one, in bursts and in batches, with pauses; return the replies."""
    replies: list[Any] = []
    waiting = list(requests(REQUESTS))
    while waiting:
        burst, waiting = waiting[: (size := chance.randrange(1, 90))], waiting[size:]
        if chance.random() < 0.3:
            served.push.put_many(burst)
        else:
            served.ask(*burst)
        if chance.random() < 0.2:
            time.sleep(chance.random() * 0.003)
        while not served.pull.empty():
            replies += served.pull.get_many(1000)
    return replies + served.replies(REQUESTS - len(replies))


def test_replies_are_the_same_with_any_number_of_ranks_and_steps_are_on_all() -> None:
    seen = []
    for ranks in (1, 2, 3):
        with serving("Chain", "chain", ranks=ranks) as served:
            seen.append(arrive_at_random(served, random.Random(ranks)))
            assert [reply.uid for reply in seen[-1]] == list(range(REQUESTS))
            served.ask(backend.ExitMsg())
            (last,) = served.replies(1)
            of_ranks = last.text.split()
            assert len(of_ranks) == ranks
            assert len(set(of_ranks)) == 1
            until(
                lambda: (
                    [each.messages for each in served.pool.stats]
                    == [REQUESTS + 1] * len(served.pool.stats)
                )
            )
    assert seen[0] == seen[1] == seen[2]


def test_a_busy_handler_is_called_without_messages_on_all_ranks_alike(
    ranks: int,
) -> None:
    with serving("Countdown", "busy", ranks=ranks) as served:
        served.ask(user(1, 200))
        first = served.replies(1)
        served.ask(user(2, 50))
        replies = first + served.replies(249)
        of_one = [reply.next_token for reply in replies if reply.uid == 1]
        assert of_one == list(range(199, -1, -1))
        assert [reply.next_token for reply in replies if reply.uid == 2] == list(
            range(49, -1, -1)
        )
        steps = [each.steps for each in served.pool.stats]
        # It sleeps when nothing is left, and wakes again.
        served.ask(user(3, 1))
        assert served.replies(1) == [token(3)]
        assert served.pool.stats[0].steps - steps[0] <= 2


def test_batches_are_opened_and_handed_over_in_bounded_calls(ranks: int) -> None:
    with serving("Sizes", "sizes", ranks=ranks, max_step_messages=3) as served:
        served.push.put_many([backend.AbortBackendMsg(uid) for uid in range(10)])
        assert [reply.next_token for reply in served.replies(4)] == [3, 3, 3, 1]


def test_a_handler_is_told_its_place_and_made_with_its_options() -> None:
    with serving("Places", "places", ranks=2, options={"greeting": "hello"}) as served:
        served.ask(backend.AbortBackendMsg(0))
        (reply,) = served.replies(1)
        threads = max(1, (os.cpu_count() or 1) // 2)
        told = "hello 0 2 0 cpu 2 {'greeting': 'hello'}"
        assert reply.text == f"{told} {threads}"
    with serving("Places", "places", options={"greeting": "x"}) as served:
        served.ask(backend.AbortBackendMsg(0))
        assert served.replies(1)[0].text.startswith("x 0 1 0 cpu None ")


def test_bad_messages_between_good_ones_are_left_out_on_every_rank(
    ranks: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    letters = tmp_path / "letters.jsonl"
    frames = backend.encode_frames(user(5, 100_000))
    bad: list[Any] = [
        b"junk",
        tokenizer.encode(token(1)),
        backend.encode(backend.AbortBackendMsg(1))[:-1],
        [frames[0]],
        b"\xc1msgstop",
    ]
    with serving("Together", "bad", ranks=ranks, dead_letters=letters) as served:
        for uid, raw in enumerate(bad):
            served.push.put_raw(raw)
            served.ask(backend.AbortBackendMsg(uid))
        assert sorted(reply.uid for reply in served.replies(5)) == list(range(5))
        # A step of bad ones alone is a step, too, and the ranks go on together.
        served.push.put_raw(b"junk")
        until(lambda: all(each.bad_messages == 6 for each in served.pool.stats))
        served.ask(backend.AbortBackendMsg(9))
        assert served.replies(1) == [token(9)]
    kept = list(read_dead_letters(letters))
    assert [each.frames for each in kept] == [
        [bytes(part) for part in ([raw] if isinstance(raw, bytes) else raw)]
        for raw in [*bad, b"junk"]
    ]
    assert [each.error for each in kept[:2]] == ["NotAMessage", "SchemaMismatch"]
    assert kept[0].path == "backend"
    assert abs(kept[0].time - time.time()) < 600
    assert letters.stat().st_mode & 0o777 == 0o600


def test_a_message_over_the_limit_is_left_out(ranks: int) -> None:
    """Each of its frames is small enough to pass; together they are too large."""
    with serving("Together", "large", ranks=ranks, max_message_bytes=100_000) as served:
        served.push.put_raw([b"head", bytes(60_000), bytes(60_000)])
        until(lambda: served.pool.stats[0].bad_messages == 1)
        served.ask(user(1, 20_000))
        assert served.replies(1) == [token(1)]
        # Many that are each within the limit make a step that is larger.
        served.ask(*(user(uid, 20_000) for uid in range(60)))
        assert [reply.uid for reply in served.replies(60)] == list(range(60))


def test_rank_0_waits_for_a_rank_that_is_behind_and_nothing_is_lost() -> None:
    with serving("Echo", "behind", ranks=2, max_step_messages=1, hwm=1) as served:
        served.ask(user(0, 20_000))
        assert served.replies(1) == [token(0)]
        os.kill(served.pool.pids[1], signal.SIGSTOP)
        sent = 1
        try:
            with pytest.raises(QueueFull):
                while True:
                    served.push.put(user(sent, 20_000), timeout=1)
                    sent += 1
        finally:
            os.kill(served.pool.pids[1], signal.SIGCONT)
        assert sent < 500
        assert [reply.uid for reply in served.replies(sent - 1)] == list(range(1, sent))
        until(lambda: served.pool.stats[1].messages == sent)


def test_a_ping_goes_through_every_rank(ranks: int) -> None:
    with serving("Together", "ping", ranks=ranks) as served:
        before = [each.steps for each in served.pool.stats]
        assert 0 < served.pool.ping(GENEROUS) < GENEROUS
        until(
            lambda: all(
                now.steps > then for now, then in zip(served.pool.stats, before)
            )
        )
        assert all(each.messages == 0 for each in served.pool.stats)


def test_a_ping_says_which_rank_hangs() -> None:
    options = {"kind": "hang", "ranks": [1]}
    with serving(
        "Troubled", "hang", ranks=2, options=options, stop_timeout=0.1
    ) as served:
        served.ask(backend.AbortBackendMsg(13))
        until(lambda: served.pool.stats[1].in_step)
        with pytest.raises(PingTimeout, match=r"rank 1 is in step 0$") as caught:
            served.pool.ping(0.5)
        assert caught.value.ranks == (1,)
        served.pool.check()
    assert not served.pool.stop()


def test_a_file_of_dead_letters_stays_within_its_limit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "letters"
    letters = DeadLetters(path, 2_000)
    error = DecodeError("backend", "no message")
    letters.append(1, [b"x" * 900], error)
    letters.append(2, [b"x" * 900], error)  # Its frames have no room, and it has.
    letters.append(3, [b"x" * 5_000], error)
    for step in range(4, 20):
        letters.append(step, [b"y"], error)
    letters.close()
    kept = list(read_dead_letters(path))
    assert [each.step for each in kept[:3]] == [1, 2, 3]
    assert [each.frames for each in kept[:3]] == [[b"x" * 900], None, None]
    assert (kept[0].path, kept[0].reason) == ("backend", "no message")
    assert path.stat().st_size <= 2_000
    assert len(kept) < 19
    assert caplog.text.count("the limit of 2000 bytes is reached") == 1


def test_a_file_of_dead_letters_on_a_full_disk_stops_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    letters = DeadLetters("/dev/full", 1 << 20)
    letters.append(1, [b"x"], DecodeError("backend", "no message"))
    letters.close()
    assert "/dev/full: cannot be written: No space left on device" in caplog.text

"""Workers in trouble: what a pool tells of it, and that it ends with all its ranks."""

from __future__ import annotations

import os
import pickle
from typing import Any

import pytest
import torch
from children import user
from handlers import TROUBLE, token
from msgen.generated import backend
from msgen.runtime import WorkerError, WorkersNotReady
from msgen.runtime.launch import WorkerPool
from msgen.runtime.sockets import ipc_address
from pools import CODECS, serving
from processes import GENEROUS, is_alive, until

pytestmark = pytest.mark.usefixtures("run_dir")


def failure(
    kind: str, ranks: int, *, at: list[int] | None = None, **more: Any
) -> WorkerError:
    """Let ranks get into trouble in a step; return the pool's error once all ranks are gone."""
    options = {"kind": kind, "ranks": at}
    with serving("Troubled", kind, ranks=ranks, options=options, **more) as served:
        served.ask(user(1, 3))
        assert served.replies(1) == [token(1)]
        served.ask(user(TROUBLE, 3))
        error = served.failure()
        assert not any(map(is_alive, served.pool.pids))
        with pytest.raises(WorkerError) as again:
            served.pool.check()
        assert again.value is error
    assert pickle.loads(pickle.dumps(error)).rank == error.rank
    return error


@pytest.mark.parametrize("at", [[0], [1], None])
def test_an_exception_arrives_with_its_traceback_and_messages(
    at: list[int] | None,
) -> None:
    error = failure("fail", 2, at=at)
    assert error.rank in (at or [0, 1])
    assert (error.type, error.message) == ("ValueError", "number 13 is bad")
    assert 'raise ValueError("number 13 is bad")' in error.traceback
    assert error.messages == (user(TROUBLE, 3),)
    assert error.step == 1
    assert error.exit_code is None
    assert str(error).startswith(
        f"rank {error.rank} failed in step 1: ValueError: number 13 is bad\n\nTraceback"
    )


def test_memory_that_cannot_be_had_is_an_exception() -> None:
    error = failure("exhaust", 1)
    assert (error.rank, error.type, error.step) == (0, "MemoryError", 1)


def test_a_handler_that_exits_is_named_with_its_messages() -> None:
    error = failure("exit", 2, at=[1])
    assert (error.rank, error.type, error.message) == (1, "SystemExit", "3")
    assert error.messages == (user(TROUBLE, 3),)


@pytest.mark.parametrize(
    ("kind", "code", "text"),
    [
        (
            "exit_at_once",
            3,
            "ended with exit code 3; a handler must not end its process",
        ),
        (
            "die",
            -9,
            "was killed by SIGKILL; if nobody did that, the machine ran out of memory",
        ),
        ("crash", -11, "was killed by SIGSEGV"),
    ],
)
@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_ends_without_a_word_is_named(
    kind: str, code: int, text: str, rank: int
) -> None:
    error = failure(kind, 2, at=[rank])
    assert (error.rank, error.type, error.exit_code) == (rank, "Exited", code)
    assert error.step == 1
    assert str(error) == f"rank {rank}, in step 1, {text}"


@pytest.mark.parametrize("kind", ["hang", "hang_with_the_lock"])
def test_a_step_that_takes_too_long_is_told_with_the_stacks(kind: str) -> None:
    """Also where the handler holds Python's lock, so that no thread of the rank can run."""
    error = failure(kind, 2, at=[1], step_timeout=0.5)
    assert (error.rank, error.type, error.step) == (1, "StepTimeout", 1)
    assert error.message.startswith("rank 1 has been in step 1 for ")
    assert error.message.endswith("; the step timeout is 0.5 s")
    assert f"in {kind}" in error.traceback


def test_of_ranks_that_hang_together_all_are_told() -> None:
    error = failure("wait_for_others", 2, at=[0], step_timeout=0.5)
    assert (error.rank, error.type) == (0, "StepTimeout")
    assert "in barrier" in error.traceback


def test_replies_that_are_no_list_are_the_handlers_fault() -> None:
    with serving("NoReplies", "none") as served:
        served.ask(backend.AbortBackendMsg(1))
        error = served.failure()
    assert error.type == "TypeError"
    assert error.message == "step returned a NoneType, expected a list of replies"


def test_a_reply_that_does_not_fit_its_schema_is_named() -> None:
    error = failure("answer_wrongly", 2)
    assert (error.rank, error.type) == (0, "msgen.runtime.errors.EncodeError")
    assert error.message.startswith("DetokenizeMsg.next_token: expected int")
    assert error.messages == (user(TROUBLE, 3),)


def test_on_error_may_answer_and_the_pool_goes_on(ranks: int) -> None:
    options = {"kind": "fail"}
    with serving("Answering", "answer", ranks=ranks, options=options) as served:
        for _ in range(20):
            served.ask(user(TROUBLE, 3), user(1, 3))
        texts = [getattr(reply, "text", None) for reply in served.replies(40)]
        assert texts.count("sorry: number 13 is bad") >= 20
        served.pool.ping(GENEROUS)


@pytest.mark.parametrize("rank", [0, 1])
def test_ranks_that_lose_step_by_an_answered_error_end_the_pool(rank: int) -> None:
    options = {"kind": "fail", "ranks": [rank]}
    with serving("Answering", "apart", ranks=2, options=options) as served:
        served.ask(user(TROUBLE, 3))
        error = served.failure()
    assert (error.rank, error.type, error.step) == (rank, "OutOfStep", 0)
    assert str(error).startswith(
        f"rank {rank} answered an error of step 0 that rank {1 - rank} did not have"
    )


def start(handler: str = "handlers:Echo", **options: Any) -> WorkerPool:
    options = {
        **CODECS,
        "start_method": "forkserver",
        "ready_timeout": GENEROUS,
        **options,
    }
    return WorkerPool(handler, replies=ipc_address("replies", "start"), **options)


@pytest.mark.parametrize("kind", ["fail", "exit_at_once", "die"])
def test_a_rank_that_fails_while_others_start_ends_the_start_at_once(kind: str) -> None:
    """Rank 0 would wait for it, and the pool for rank 0."""
    pool = start(
        "handlers:Troubled", ranks=2, options={"kind": f"setup-{kind}", "ranks": [1]}
    )
    with pytest.raises(WorkerError) as caught, pool:
        pass
    error = caught.value
    assert error.rank == 1
    assert "while setting the handler up" in str(error)
    assert not any(map(is_alive, pool.pids))


def test_ranks_that_are_not_ready_are_named_with_how_far_they_are() -> None:
    pool = start(
        "handlers:Troubled",
        ranks=3,
        options={"kind": "setup-hang", "ranks": [1, 2]},
        ready_timeout=3,
    )
    with pytest.raises(WorkersNotReady) as caught, pool:
        pass
    error = caught.value
    assert error.ranks == (0, 1, 2)  # Rank 0 is not ready before the others are.
    assert str(error).startswith(
        "not all ranks were ready within 3 s: rank 0 (process "
    )
    assert "has been waiting for the other ranks for" in str(error)
    assert "has been setting the handler up for" in str(error)
    assert "in hang" in error.traceback
    assert not any(map(is_alive, pool.pids))


@pytest.mark.parametrize(
    ("handler", "type_", "message"),
    [
        ("nowhere:Echo", "ModuleNotFoundError", "No module named 'nowhere'"),
        ("handlers:Nobody", "ValueError", "handler: module 'handlers' has no 'Nobody'"),
        (
            "handlers:NoHandler",
            "ValueError",
            "handler: 'handlers:NoHandler' is not a class derived from "
            "msgen.runtime.worker.InferenceHandler",
        ),
    ],
)
def test_a_handler_that_cannot_be_had_is_told(
    handler: str, type_: str, message: str
) -> None:
    with pytest.raises(WorkerError) as caught, start(handler):
        pass
    assert (caught.value.rank, caught.value.type) == (0, type_)
    assert caught.value.message == message
    assert str(caught.value).startswith("rank 0 failed while importing the handler: ")


def test_an_address_in_use_is_told_before_the_handler_is_imported() -> None:
    with serving("Echo", "first") as served:
        with (
            pytest.raises(WorkerError) as caught,
            start("nowhere:Echo", requests=served.pool.addr),
        ):
            pass
        assert caught.value.type == "msgen.runtime.errors.AddressInUse"
        served.pool.ping(GENEROUS)


def test_a_machine_without_gpus_is_told() -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    text = "this machine has 0 such devices"
    with pytest.raises(WorkerError, match=text), start(device="cuda"):
        pass


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"ranks": 0}, "ranks: expected 1 or more, got 0"),
        ({"max_step_messages": 0}, "max_step_messages: expected 1 or more, got 0"),
        ({"step_timeout": -1}, "step_timeout: expected 0 or more, got -1"),
        ({"device": "tpu"}, "device: expected 'cpu' or 'cuda', got 'tpu'"),
        ({"start_method": "fork"}, "expected 'spawn' or 'forkserver', got 'fork'"),
        ({"request_codec": "msgen"}, "expected 'package.module:name', got 'msgen'"),
        (
            {"reply_codec": "os:path"},
            "reply_codec: 'os:path' is a module, expected a codec",
        ),
        ({"requests": "nowhere"}, "expected ipc://PATH"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_starts(
    options: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError) as caught:
        start(**options)
    assert text in str(caught.value)


def test_options_that_cannot_be_sent_are_named() -> None:
    with pytest.raises(TypeError, match=r"options\['model'\]: cannot be sent"):
        start(options={"model": lambda: None})


def test_a_failure_is_raised_where_the_pool_is_left() -> None:
    """Also if nobody asked for it meanwhile."""
    text = "rank 0, between steps, after 0 of them, was killed"
    with pytest.raises(WorkerError, match=text), start() as pool:
        os.kill(pool.pids[0], 9)
        until(lambda: not is_alive(pool.pids[0]))

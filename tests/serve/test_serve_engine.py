"""The scheduler and the model of examples/serve, on a tiny model and without other processes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from msgen.generated import backend
from msgen.generated.common import Failure, FailureKind, FinishReason, SamplingParams
from msgen.generated.tokenizer import DetokenizeMsg, FinishMsg, PongMsg
from processes import CONTEXT as PROCESSES
from processes import GENEROUS, finished, running
from serve.engine import sampling
from serve.model.llama import LlamaConfig, load
from serve.model.tensor_parallel import splits_heads
from serve_tiny import (
    CONTEXT,
    SIZES,
    cache_for,
    engine,
    logits_of,
    request,
    run,
    split_logits,
    tokens_of,
    write_tiny,
)

PROMPT = [5, 17, 3, 44, 59, 8, 8, 21, 30, 12]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """More would only wait for each other, at this size."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("tiny"))


def prompts(count: int) -> list[list[int]]:
    chance = random.Random(7)
    return [
        [chance.randrange(1, 60) for _ in range(chance.randrange(1, 40))]
        for _ in range(count)
    ]


def alone(folder: Path, tokens: list[int], **params: Any) -> list[int]:
    """The tokens that a request gets which is the only one."""
    return tokens_of(run(engine(folder), [request(1, tokens, **params)]), 1)


@pytest.mark.parametrize("pieces", [[1] * 10, [4, 6], [9, 1], [1, 8, 1]])
def test_a_prompt_may_be_computed_in_pieces(folder: Path, pieces: list[int]) -> None:
    llama = load(folder)
    cache = cache_for(llama, 16)
    with torch.no_grad():
        whole = logits_of(llama, cache, PROMPT, [10])
        torch.testing.assert_close(logits_of(llama, cache, PROMPT, pieces), whole)
    assert cache.free == cache.total == 16


def test_the_order_of_tokens_matters(folder: Path) -> None:
    llama = load(folder)
    with torch.no_grad():
        there = logits_of(llama, cache_for(llama, 16), PROMPT, [10])
        back = logits_of(
            llama, cache_for(llama, 16), [8, *PROMPT[1:5], 5, *PROMPT[6:]], [10]
        )
    assert (there - back).abs().max() > 0.1


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_together_compute_what_one_does(
    folder: Path, tmp_path: Path, ranks: int
) -> None:
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).symlink_to(folder / name)
    assert splits_heads(LlamaConfig(**SIZES), ranks) is (ranks == 2)
    llama = load(folder)
    with torch.no_grad():
        expected = logits_of(llama, cache_for(llama, 16), PROMPT, [10])
    pipes = [PROCESSES.Pipe(duplex=False) for _ in range(ranks)]
    processes = []
    for rank, (_, told) in enumerate(pipes):
        args = (str(tmp_path), rank, ranks, PROMPT, told)
        processes.append(running(split_logits, *args))
    started = [process.__enter__() for process in processes]
    try:
        results = []
        for heard, _ in pipes:
            assert heard.poll(GENEROUS)
            results.append(heard.recv())
        for process in started:
            finished(process)
    finally:
        for each in processes:
            each.__exit__(None, None, None)
    for width, logits in results:
        # 4 heads of 8: split over 2 ranks, whole on each of 3.
        assert width == (16 if ranks == 2 else 32)
        torch.testing.assert_close(torch.tensor(logits), expected)
        assert logits == results[0][1]


def test_requests_of_any_length_run_together_as_if_alone(folder: Path) -> None:
    asked = prompts(12)
    many = engine(folder, max_running=5, cache_tokens=400)
    replies = run(
        many,
        [request(uid, tokens) for uid, tokens in enumerate(asked[:4])],
        [request(uid, asked[uid]) for uid in (4, 5, 6)],
        [],
        [request(uid, asked[uid]) for uid in range(7, 12)],
    )
    for uid, tokens in enumerate(asked):
        assert tokens_of(replies, uid) == alone(folder, tokens)
    stats = many.step([backend.PingBackendMsg(1)])[0].stats
    assert (stats.finished, stats.largest_batch) == (12, 5)
    assert (stats.running, stats.waiting, stats.free_tokens) == (0, 0, 400)


def test_a_full_cache_takes_the_youngest_out_and_loses_nothing(folder: Path) -> None:
    asked = prompts(8)
    tight = engine(folder, cache_tokens=CONTEXT)
    most = 0
    replies = tight.step(
        [request(uid, each, max_tokens=40) for uid, each in enumerate(asked)]
    )
    before: set[int] = set()
    went_back = 0
    while tight.busy:
        replies += tight.step([])
        scheduler: Any = tight._scheduler
        now = {each.uid for each in scheduler.running}
        went_back += len(before & {each.uid for each in scheduler.waiting})
        before = now
        most = max(most, len(now))
    assert went_back > 0
    assert most > 1
    for uid, tokens in enumerate(asked):
        assert tokens_of(replies, uid) == alone(folder, tokens, max_tokens=40)


def test_a_long_prompt_does_not_hold_up_the_others(folder: Path) -> None:
    both = engine(folder, max_step_tokens=8)
    both.step([request(1, [4, 5])])
    replies = both.step([request(2, [9] * 60)])
    for _ in range(6):
        replies += both.step([])
    # Eight pieces of eight tokens: the first request got a token beside each of them.
    assert len(tokens_of(replies, 1)) == 7
    assert tokens_of(replies, 2) == []
    assert tokens_of(both.step([]), 2) != []


def test_the_end_is_told_with_its_reason(folder: Path, tmp_path: Path) -> None:
    long = alone(folder, PROMPT, max_tokens=60)
    limited = run(engine(folder), [request(1, PROMPT, max_tokens=3)])
    assert limited[-1] == FinishMsg(1, FinishReason.length, 10, 3, None)
    assert [reply.finished for reply in limited[:-1]] == [False, False, True]
    # A token that the answer holds serves as its end.
    ending = engine(write_tiny(tmp_path, eos_token_id=long[4]))
    ended = run(ending, [request(1, PROMPT, max_tokens=60, ignore_eos=False)])
    assert tokens_of(ended, 1) == long[: long.index(long[4]) + 1]
    assert ended[-1].reason is FinishReason.stop
    assert ended[-1].completion_tokens == long.index(long[4]) + 1


def test_an_aborted_request_frees_its_room_at_once(folder: Path) -> None:
    few = engine(folder, max_running=1)
    few.step([request(1, PROMPT), request(2, PROMPT)])
    replies = few.step([backend.AbortBackendMsg(1), backend.PingBackendMsg(9)])
    assert replies[0] == FinishMsg(1, FinishReason.abort, 10, 1, None)
    assert isinstance(replies[1], PongMsg)
    assert (replies[1].stats.running, replies[1].stats.waiting) == (0, 1)
    assert replies[1].stats.free_tokens == replies[1].stats.total_tokens
    assert [each.uid for each in replies[2:]] == [2]
    waiting = few.step([request(3, PROMPT), backend.AbortBackendMsg(3)])
    assert waiting[0] == FinishMsg(3, FinishReason.abort, 10, 0, None)
    assert few.step([backend.AbortBackendMsg(77)])[0].uid == 2  # nobody's; not an error


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (request(1, []), "input_ids: expected a token at least, got none"),
        (request(1, [60]), "input_ids: expected ids from 0 to 59"),
        (request(1, [-1]), "input_ids: expected ids from 0 to 59"),
        (
            request(1, [3], max_tokens=0),
            "sampling_params.max_tokens: expected 1 or more, got 0",
        ),
        (
            request(1, [3], temperature=float("nan")),
            "sampling_params.temperature: expected 0 or more, got nan",
        ),
        (
            request(1, [3], top_k=0),
            "sampling_params.top_k: expected -1 for all tokens, or 1 or more, got 0",
        ),
        (
            request(1, [3], top_p=0.0),
            "sampling_params.top_p: expected more than 0 and at most 1, got 0.0",
        ),
        (
            request(1, [3] * 90, max_tokens=7),
            "input_ids, sampling_params.max_tokens: 90 and 7 tokens are more than the context of 96",
        ),
        (request(8, [3]), "uid: 8 is the number of another request"),
    ],
)
def test_a_request_that_cannot_run_gets_an_answer(
    folder: Path, message: backend.UserMsg, text: str
) -> None:
    busy = engine(folder)
    busy.step([request(8, PROMPT)])
    replies = busy.step([message])
    failure = Failure(FailureKind.invalid, text)
    tokens = len(message.input_ids)
    assert replies[0] == FinishMsg(message.uid, FinishReason.error, tokens, 0, failure)
    assert isinstance(replies[1], DetokenizeMsg)  # The other one goes on.
    assert len(tokens_of(run(busy), 8)) == 10


def test_what_waits_is_bounded(folder: Path) -> None:
    few = engine(folder, max_running=1, max_waiting=2)
    few.step([request(1, PROMPT)])
    replies = few.step([request(uid, PROMPT) for uid in (2, 3, 4)])
    failure = Failure(FailureKind.busy, "2 requests wait already; try again later")
    assert replies[0] == FinishMsg(4, FinishReason.error, 10, 0, failure)
    replies = run(few)
    for uid in (2, 3):
        assert len(tokens_of(replies, uid)) == 12
    assert few.step([request(5, PROMPT)])[0].uid == 5


def test_a_request_has_chances_of_its_own(folder: Path) -> None:
    params = {"temperature": 1.0, "max_tokens": 30}
    one = tokens_of(run(engine(folder), [request(1, PROMPT, **params)]), 1)
    together = run(
        engine(folder), [request(2, PROMPT, **params), request(1, PROMPT, **params)]
    )
    assert tokens_of(together, 1) == one
    assert tokens_of(together, 2) != one


def test_an_engine_refuses_a_context_that_cannot_be(folder: Path) -> None:
    with pytest.raises(ValueError, match="context: expected at most 95, got 96"):
        engine(folder, cache_tokens=CONTEXT - 1)


def test_likely_tokens_are_chosen_from() -> None:
    logits = torch.tensor([0.0, 3.0, 2.0, 1.0])
    chance = torch.Generator().manual_seed(3)

    def chosen(**params: Any) -> set[int]:
        wanted = SamplingParams(**{"temperature": 1.0, **params})
        return {sampling.choose(logits, wanted, chance) for _ in range(300)}

    assert chosen(temperature=0.0) == {1}
    assert chosen(top_k=1) == {1}
    assert chosen(top_k=2) == {1, 2}
    assert chosen(top_p=0.01) == {1}
    # 0.64, 0.24, 0.09 and 0.03: two tokens reach 0.8, and the third is not needed.
    assert chosen(top_p=0.8) == {1, 2}
    assert chosen(top_k=100, top_p=0.9) == {1, 2, 3}
    assert chosen(temperature=3.0) == {0, 1, 2, 3}

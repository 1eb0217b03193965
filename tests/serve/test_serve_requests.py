"""What a chat request of examples/serve may hold, and what its mistakes are answered with."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgen.generated.common import FinishReason, SamplingParams
from msgen.generated.frontend import UserReply
from serve.api.chat_request import ChatRequest, parse
from serve.api.errors import ApiError
from serve.api.stop_text import until_stop

CONTEXT = 100
HI = [{"role": "user", "content": "Hi"}]


def parsed(**parameters: Any) -> ChatRequest:
    body = {"model": "m", "messages": HI, **parameters}
    return parse(json.dumps(body).encode(), CONTEXT)


def error_of(body: bytes) -> ApiError:
    with pytest.raises(ApiError) as caught:
        parse(body, CONTEXT)
    return caught.value


def test_a_request_has_the_defaults_of_the_api() -> None:
    params = SamplingParams(temperature=1.0, max_tokens=CONTEXT)
    assert parsed() == ChatRequest("m", HI, params, (), False, False)


def test_everything_may_be_said() -> None:
    asked = parsed(
        temperature=0,
        top_p=0.5,
        top_k=7,
        ignore_eos=True,
        max_completion_tokens=9,
        stop=["a", "bc"],
        stream=True,
        stream_options={"include_usage": True},
    )
    assert asked.params == SamplingParams(0.0, 7, 0.5, True, 9)
    assert (asked.stream, asked.include_usage) == (True, True)
    assert asked.stops == ("a", "bc")
    assert parsed(stop="\n").stops == ("\n",)


def test_roles_and_parts_become_what_the_template_knows() -> None:
    asked = parsed(
        messages=[
            {"role": "developer", "content": "Be brief."},
            {
                "role": "user",
                "name": "Ada",
                "content": [
                    {"type": "text", "text": "a"},
                    {"type": "text", "text": "b"},
                ],
            },
            {"role": "assistant", "content": "", "refusal": None, "tool_calls": []},
        ]
    )
    assert asked.messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "ab"},
        {"role": "assistant", "content": ""},
    ]


@pytest.mark.parametrize(
    "harmless",
    [
        {"n": 1},
        {"stop": None},
        {"stop": []},
        {"user": "me", "metadata": {"a": "b"}, "store": True},
        {"presence_penalty": 0, "frequency_penalty": 0.0},
        {"response_format": {"type": "text"}, "logprobs": False, "logit_bias": {}},
        {"tools": None, "tool_choice": "none"},
    ],
)
def test_what_changes_nothing_is_let_through(harmless: dict[str, Any]) -> None:
    assert parsed(**harmless) == parsed()


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"model": None}, "model: expected the name of a model, got None"),
        ({"model": 7}, "model: expected the name of a model, got 7"),
        (
            {"messages": None},
            "messages: expected a list of 1 to 1024 messages, got None",
        ),
        ({"messages": []}, "messages: expected a list of 1 to 1024 messages, got []"),
        (
            {"messages": ["Hi"]},
            "messages[0]: expected an object with role and content, got 'Hi'",
        ),
        (
            {"messages": [{"role": "tool", "content": "x"}]},
            "messages[0].role: expected one of system, developer, user, assistant, got 'tool'",
        ),
        (
            {"messages": [*HI, {"role": "user"}]},
            "messages[1].content: expected a string, or a list of text parts, got None",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            'messages[0].content[0]: expected a part {"type": "text", "text": ...}, got '
            "{'type': 'image_url'}",
        ),
        (
            {"messages": [{"role": "assistant", "content": "", "tool_calls": [1]}]},
            "messages[0].tool_calls: not supported by this server; leave it out",
        ),
        ({"temperature": -0.1}, "temperature: expected a number from 0 to 2, got -0.1"),
        ({"temperature": 2.5}, "temperature: expected a number from 0 to 2, got 2.5"),
        ({"temperature": "1"}, "temperature: expected a number from 0 to 2, got '1'"),
        ({"temperature": True}, "temperature: expected a number from 0 to 2, got True"),
        ({"top_p": 0}, "top_p: expected a number above 0 and up to 1, got 0.0"),
        ({"top_p": 1.1}, "top_p: expected a number above 0 and up to 1, got 1.1"),
        (
            {"top_k": 0},
            "top_k: expected an integer from 1, or -1 for all tokens, got 0",
        ),
        (
            {"top_k": -2},
            "top_k: expected an integer from 1, or -1 for all tokens, got -2",
        ),
        (
            {"max_tokens": 0},
            "max_tokens: expected an integer from 1 to 100, the model's context, got 0",
        ),
        (
            {"max_tokens": 1.5},
            "max_tokens: expected an integer from 1 to 100, the model's context, got 1.5",
        ),
        (
            {"max_completion_tokens": 10**30},
            "max_completion_tokens: expected an integer from 1 to 100, the model's context, got "
            "1000000000000000000000000000000",
        ),
        ({"stream": 1}, "stream: expected true or false, got 1"),
        ({"stream_options": {}}, "stream_options: only with stream true"),
        (
            {"stream": True, "stream_options": {"usage": 1}},
            "stream_options: expected an object with include_usage, got {'usage': 1}",
        ),
        (
            {"stream": True, "stream_options": {"include_usage": "yes"}},
            "stream_options.include_usage: expected true or false, got 'yes'",
        ),
        ({"n": 2}, "n: not supported by this server; leave it out"),
        ({"stop": ""}, "stop: expected a text, or a list of up to 4 texts, got ''"),
        (
            {"stop": ["a", 1]},
            "stop: expected a text, or a list of up to 4 texts, got ['a', 1]",
        ),
        (
            {"stop": ["a"] * 5},
            "stop: expected a text, or a list of up to 4 texts, got ['a', 'a', 'a', 'a', 'a']",
        ),
        ({"seed": 1}, "seed: not supported by this server; leave it out"),
        ({"tools": [{}]}, "tools: not supported by this server; leave it out"),
        ({"temprature": 1}, "temprature: no such parameter; remove it"),
    ],
)
def test_mistakes_are_named(parameters: dict[str, Any], text: str) -> None:
    body = json.dumps({"model": "m", "messages": HI, **parameters}).encode()
    error = error_of(body)
    assert (error.status, error.text) == (400, text)
    assert error.param is not None
    assert text.startswith(error.param)
    assert error.body()["error"]["message"] == text


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "the body is not JSON: Expecting value: line 1 column 1 (char 0)"),
        (b"[1]", "the body: expected a JSON object, got list"),
        (b"\xff", "the body is not JSON: "),
        (b'{"temperature": NaN}', "the body is not JSON: NaN is not a JSON value"),
        (b"[" * 100_000, "the body is not JSON: "),
        (b'{"a": ' + b"9" * 5000 + b"}", "the body is not JSON: "),
    ],
)
def test_what_is_not_json_is_told(body: bytes, text: str) -> None:
    assert error_of(body).text.startswith(text)


def test_a_long_value_is_shown_in_part() -> None:
    error = error_of(json.dumps({"model": "m", "messages": "x" * 10_000}).encode())
    assert len(error.text) < 200


def stopped(parts: list[str], stops: list[str]) -> tuple[str, UserReply, int]:
    """The text up to a stop text, the last reply, and how often the engine was told to end."""
    told: list[int] = []

    async def replies() -> AsyncIterator[UserReply]:
        for part in parts:
            yield UserReply(1, part, False)
        reason = FinishReason.abort if told else FinishReason.length
        yield UserReply(1, "", True, reason, 3, 4)

    async def collect() -> list[UserReply]:
        passed = until_stop(replies(), stops, lambda: told.append(1))
        return [reply async for reply in passed]

    passed = asyncio.run(collect())
    assert [reply.finished for reply in passed[:-1]] == [False] * (len(passed) - 1)
    return "".join(reply.incremental_output for reply in passed), passed[-1], len(told)


def test_an_answer_ends_where_a_stop_text_begins() -> None:
    for parts in (["one\ntwo"], ["one", "\n", "two"], ["one\n", "two", "three"]):
        text, last, told = stopped(parts, ["\n", "three"])
        assert (text, told) == ("one", 1)
        assert (last.finish_reason, last.completion_tokens) == (FinishReason.stop, 4)
    # What looks like the beginning of one is not lost, wherever it ends.
    for parts in (["a<|", "b"], ["a<|b"], ["a<", "|b"]):
        text, last, told = stopped(parts, ["<|end|>"])
        assert (text, last.finish_reason, told) == ("a<|b", FinishReason.length, 0)
    assert stopped(["a<|en"], ["<|end|>"])[0] == "a<|en"


@given(
    parts=st.lists(st.text("ab", max_size=5), max_size=6),
    stops=st.lists(st.text("ab", min_size=1, max_size=4), min_size=1, max_size=3),
)
def test_how_text_is_cut_does_not_decide_where_it_stops(
    parts: list[str], stops: list[str]
) -> None:
    whole = "".join(parts)
    found = [(at + len(each), at) for each in stops if (at := whole.find(each)) >= 0]
    text, last, told = stopped(parts, stops)
    if found:
        first = min(found)[1]
        assert (text, last.finish_reason, told) == (whole[:first], FinishReason.stop, 1)
    else:
        assert (text, last.finish_reason, told) == (whole, FinishReason.length, 0)

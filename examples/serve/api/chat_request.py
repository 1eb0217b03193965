"""The body of a chat request: what of OpenAI's API this server takes, checked.

Nothing that would change the answer is passed over in silence: a parameter that is not supported
is an error unless it has the value that changes nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgen.generated.common import SamplingParams

from .errors import ApiError, wrong

MOST_MESSAGES = 1024  # More than a context has room for, in turns of a few words.
MOST_STOPS = 4  # As OpenAI has it.

_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
_IGNORED = {
    "metadata",
    "prompt_cache_key",
    "safety_identifier",
    "service_tier",
    "store",
    "user",
}
"""Parameters that do not change the answer."""
_UNSUPPORTED: dict[str, tuple[Any, ...]] = {
    "audio": (),
    "frequency_penalty": (0,),
    "function_call": ("none", "auto"),
    "functions": ([],),
    "logit_bias": ({},),
    "logprobs": (False,),
    "modalities": (["text"],),
    "n": (1,),
    "parallel_tool_calls": (True, False),
    "prediction": (),
    "presence_penalty": (0,),
    "reasoning_effort": (),
    "response_format": ({"type": "text"},),
    "seed": (),
    "tool_choice": ("none", "auto"),
    "tools": ([],),
    "top_logprobs": (0,),
    "verbosity": (),
    "web_search_options": (),
}
"""Parameters of OpenAI's that this server has not, and their values that change nothing."""


@dataclass(frozen=True)
class ChatRequest:
    """A checked request.

    Attributes:
        model: as the client named it.
        messages: with `role` and `content`, as the chat template takes them.
        params: how to choose tokens.
        stops: texts that end the answer.
        stream: whether the answer is wanted in pieces.
        include_usage: whether the last piece is to tell the numbers of tokens.
    """

    model: str
    messages: list[dict[str, str]]
    params: SamplingParams
    stops: tuple[str, ...]
    stream: bool
    include_usage: bool


def parse(body: bytes, context: int) -> ChatRequest:
    """Read a request.

    Args:
        body: JSON.
        context: tokens that prompt and answer may have together.

    Raises:
        ApiError: it is no JSON, or a parameter is wrong; the error names it.
    """
    given = _Given(_read_json(body))
    model = given.take("model")
    if not isinstance(model, str) or not model:
        raise wrong("model", "the name of a model", model)
    messages = _messages(given.take("messages"))
    params = _sampling(given, context)
    stops = _stops(given.take("stop"))
    stream = given.flag("stream")
    options = given.take("stream_options")
    include_usage = _include_usage(options, stream)
    given.refuse_rest()
    return ChatRequest(model, messages, params, stops, stream, include_usage)


class _Given:
    """The parameters of a request that nobody has taken yet."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        # A parameter that is null is as good as absent.
        self._rest = {
            name: value for name, value in parameters.items() if value is not None
        }

    def take(self, name: str) -> Any:
        return self._rest.pop(name, None)

    def flag(self, name: str) -> bool:
        value = self._rest.pop(name, False)
        if not isinstance(value, bool):
            raise wrong(name, "true or false", value)
        return value

    def number(
        self, name: str, default: float, expected: str, low: float, high: float
    ) -> float:
        """Take a number from `low` to `high`."""
        value = self._rest.pop(name, default)
        fits = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not fits or not low <= value <= high or not math.isfinite(value):
            raise wrong(name, expected, value)
        return float(value)

    def whole(self, name: str, expected: str, low: int, high: int) -> int | None:
        """Take an integer from `low` to `high`; None where there is none."""
        value = self._rest.pop(name, None)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool):
            raise wrong(name, expected, value)
        if not low <= value <= high:
            raise wrong(name, expected, value)
        return value

    def refuse_rest(self) -> None:
        """Raise for the first parameter that is left and would change the answer."""
        for name, value in self._rest.items():
            if name in _IGNORED:
                continue
            if name not in _UNSUPPORTED:
                raise ApiError(
                    f"{name}: no such parameter; remove it",
                    param=name,
                    code="unknown_parameter",
                )
            if value not in _UNSUPPORTED[name]:
                raise ApiError(
                    f"{name}: not supported by this server; leave it out",
                    param=name,
                    code="unsupported_parameter",
                )


def _read_json(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ApiError(f"the body is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ApiError(f"the body: expected a JSON object, got {type(found).__name__}")
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _messages(found: Any) -> list[dict[str, str]]:
    expected = f"a list of 1 to {MOST_MESSAGES} messages"
    if not isinstance(found, list) or not 1 <= len(found) <= MOST_MESSAGES:
        raise wrong("messages", expected, found)
    return [_message(each, f"messages[{number}]") for number, each in enumerate(found)]


def _message(found: Any, place: str) -> dict[str, str]:
    if not isinstance(found, dict):
        raise wrong(place, "an object with role and content", found)
    role = found.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        raise wrong(f"{place}.role", f"one of {', '.join(_ROLES)}", role)
    for name, value in found.items():
        if name not in ("role", "content", "name", "refusal") and value:
            raise ApiError(
                f"{place}.{name}: not supported by this server; leave it out",
                param=f"{place}.{name}",
                code="unsupported_parameter",
            )
    return {"role": _ROLES[role], "content": _text(found.get("content"), place)}


def _text(content: Any, place: str) -> str:
    """Return the content's text, which may come in parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise wrong(f"{place}.content", "a string, or a list of text parts", content)
    texts = []
    for number, part in enumerate(content):
        text = part.get("text") if isinstance(part, dict) else None
        if not isinstance(text, str) or part.get("type") != "text":
            at = f"{place}.content[{number}]"
            raise wrong(at, 'a part {"type": "text", "text": ...}', part)
        texts.append(text)
    return "".join(texts)


def _sampling(given: _Given, context: int) -> SamplingParams:
    expected = f"an integer from 1 to {context}, the model's context"
    limits = [
        given.whole(name, expected, 1, context)
        for name in ("max_completion_tokens", "max_tokens")
    ]
    top_k = given.whole("top_k", "an integer from 1, or -1 for all tokens", -1, 1 << 31)
    if top_k == 0:
        raise wrong("top_k", "an integer from 1, or -1 for all tokens", top_k)
    top_p = given.number("top_p", 1.0, "a number above 0 and up to 1", 0, 1)
    if top_p == 0:
        raise wrong("top_p", "a number above 0 and up to 1", top_p)
    return SamplingParams(
        temperature=given.number("temperature", 1.0, "a number from 0 to 2", 0, 2),
        top_k=-1 if top_k is None else top_k,
        top_p=top_p,
        ignore_eos=given.flag("ignore_eos"),
        # Without a limit, what the prompt leaves: the tokenizer cuts it.
        max_tokens=next((limit for limit in limits if limit is not None), context),
    )


def _stops(found: Any) -> tuple[str, ...]:
    stops = [found] if isinstance(found, str) else found or []
    fits = isinstance(stops, list) and len(stops) <= MOST_STOPS
    if not fits or not all(isinstance(stop, str) and stop for stop in stops):
        raise wrong("stop", f"a text, or a list of up to {MOST_STOPS} texts", found)
    return tuple(stops)


def _include_usage(options: Any, stream: bool) -> bool:
    if options is None:
        return False
    if not stream:
        raise ApiError("stream_options: only with stream true", param="stream_options")
    known = {"include_usage", "include_obfuscation"}
    if not isinstance(options, dict) or not options.keys() <= known:
        raise wrong("stream_options", "an object with include_usage", options)
    wanted = options.get("include_usage") or False
    if not isinstance(wanted, bool):
        raise wrong("stream_options.include_usage", "true or false", wanted)
    return wanted

"""The bodies of answers, as OpenAI's API gives them: whole, or in chunks."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

from msgen.generated.frontend import UserReply

DONE = b"data: [DONE]\n\n"
"""The last event of a stream."""


def event(body: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n"


def usage(last: UserReply) -> dict[str, int]:
    """The numbers of tokens, which the last reply tells."""
    return {
        "prompt_tokens": last.prompt_tokens,
        "completion_tokens": last.completion_tokens,
        "total_tokens": last.prompt_tokens + last.completion_tokens,
    }


def finish_reason(last: UserReply) -> str | None:
    """Why the answer has ended, in OpenAI's words."""
    return None if last.finish_reason is None else last.finish_reason.name


@dataclass
class Answer:
    """Makes the bodies of one answer.

    Attributes:
        uid: the request's number.
        model: as the client named it.
        include_usage: whether chunks tell the numbers of tokens.
        created: seconds since 1970.
    """

    uid: int
    model: str
    include_usage: bool = False
    created: int = field(default_factory=lambda: int(time.time()))

    def whole(self, text: str, last: UserReply) -> dict[str, Any]:
        """The answer in one."""
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text, "refusal": None},
            "logprobs": None,
            "finish_reason": finish_reason(last),
        }
        return self._body("chat.completion", [choice], usage=usage(last))

    def first(self) -> bytes:
        """The chunk before all text."""
        return self._chunk({"role": "assistant", "content": ""}, None)

    def piece(self, reply: UserReply) -> bytes:
        """The chunk of one reply's text."""
        return self._chunk({"content": reply.incremental_output}, None)

    def last(self, reply: UserReply) -> bytes:
        """The chunks that end the answer, and the numbers of tokens if they are wanted."""
        chunks = self._chunk({}, finish_reason(reply))
        if self.include_usage:
            body = self._body("chat.completion.chunk", [], usage=usage(reply))
            chunks += event(body)
        return chunks + DONE

    def _chunk(self, delta: dict[str, str], reason: str | None) -> bytes:
        choice = {
            "index": 0,
            "delta": delta,
            "logprobs": None,
            "finish_reason": reason,
        }
        more: dict[str, Any] = {"usage": None} if self.include_usage else {}
        return event(self._body("chat.completion.chunk", [choice], **more))

    def _body(
        self, kind: str, choices: list[dict[str, Any]], **more: Any
    ) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.uid:016x}",
            "object": kind,
            "created": self.created,
            "model": self.model,
            "choices": choices,
            **more,
        }

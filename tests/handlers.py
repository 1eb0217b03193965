"""Handlers of tests; ranks import them by name."""

from __future__ import annotations

from typing import Any

from msgen.generated import backend, tokenizer
from msgen.runtime.worker import InferenceHandler, WorkerContext


class Echo(InferenceHandler):
    """Answers each request with its number."""

    def setup(self, context: WorkerContext) -> None:
        self.context = context

    def step(self, messages: list[Any]) -> list[Any]:
        replies: list[Any] = []
        for message in messages:
            if isinstance(message, backend.ExitMsg):
                self.context.stop()
            else:
                replies.append(tokenizer.DetokenizeMsg(message.uid, 1, True))
        return replies

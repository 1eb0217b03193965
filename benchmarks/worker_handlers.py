"""The handlers of the workers' benchmark: ranks import them by name."""

from __future__ import annotations

from typing import Any

from msgen.runtime.worker import InferenceHandler


class Null(InferenceHandler):
    """Does nothing: each request is its own reply."""

    def step(self, messages: list[Any]) -> list[Any]:
        return messages

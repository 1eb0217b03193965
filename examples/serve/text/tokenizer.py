"""The tokenizer's process: conversations to token ids.

A request that it cannot pass on it answers itself, so that no client waits for nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import jinja2
import jinja2.sandbox
import torch
from msgen.generated import backend, frontend
from msgen.generated import tokenizer as messages
from msgen.generated.common import Failure, FailureKind, FinishReason
from msgen.runtime import DecodeError
from msgen.runtime.queues import ZmqPullQueue, ZmqPushQueue
from tokenizers import Tokenizer

from .. import child
from ..wiring import Wiring

_log = logging.getLogger(__name__)
_MOST_AT_ONCE = 64
"""Requests taken together: as many as a step of the workers has messages."""


class RequestRefused(Exception):
    """The request cannot be run.

    Attributes:
        failure: why, for the client.
    """

    def __init__(self, text: str, kind: FailureKind = FailureKind.invalid) -> None:
        super().__init__(text)
        self.failure = Failure(kind, text)


class Prompts:
    """Makes prompts of conversations.

    Args:
        model: its folder.
        context: tokens that a request may come to, prompt and answer.
    """

    def __init__(self, model: Path, context: int) -> None:
        self._tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
        source = (model / "chat_template.jinja").read_text(encoding="utf-8")
        # The template comes with the weights: it is data from elsewhere.
        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True
        )
        environment.globals["raise_exception"] = _refuse
        self._template = environment.from_string(source)
        self._context = context

    def request(self, message: messages.TokenizeMsg) -> backend.UserMsg:
        """Return the request for the scheduler.

        Its max_tokens is at most what the prompt leaves of the context.

        Raises:
            RequestRefused: the prompt leaves no room, or the template refuses the conversation.
        """
        ids = self._tokenizer.encode(self._text(message), add_special_tokens=False).ids
        room = self._context - len(ids)
        if room < 1:
            raise RequestRefused(
                f"the prompt has {len(ids)} tokens, and the model's context of {self._context} "
                f"tokens must hold prompt and answer; shorten the messages to at most "
                f"{self._context - 1} tokens",
                FailureKind.too_long,
            )
        if not ids:
            raise RequestRefused("the prompt is empty")
        params = message.sampling_params
        params = replace(params, max_tokens=min(params.max_tokens, room))
        input_ids = torch.tensor(ids, dtype=torch.int32)
        return backend.UserMsg(message.uid, input_ids, params)

    def _text(self, message: messages.TokenizeMsg) -> str:
        if isinstance(message.text, str):
            return message.text
        try:
            return self._template.render(
                messages=message.text, add_generation_prompt=True
            )
        except jinja2.TemplateError as error:
            raise RequestRefused(
                f"messages: the model's chat template refuses them: {error}"
            ) from error


def _refuse(text: str) -> None:
    raise jinja2.TemplateError(text)


def refusal(uid: int, failure: Failure) -> frontend.UserReply:
    """Return the last and only reply to a request that is not run."""
    return frontend.UserReply(
        uid,
        incremental_output="",
        finished=True,
        finish_reason=FinishReason.error,
        failure=failure,
    )


def main(wiring: Wiring, pipe: Connection) -> None:
    """Be the tokenizer's process."""

    def work(ready: Callable[[], None]) -> None:
        prompts = Prompts(Path(wiring.model), wiring.context)
        with (
            ZmqPullQueue(
                wiring.tokenizer, create=True, codec=messages.CODEC
            ) as requests,
            ZmqPushQueue(
                wiring.backend, create=False, codec=backend.CODEC
            ) as scheduler,
            ZmqPushQueue(wiring.frontend, create=False, codec=frontend.CODEC) as server,
        ):
            ready()
            while True:
                take(prompts, requests, scheduler, server)

    child.run(pipe, work)


def take(
    prompts: Prompts,
    requests: ZmqPullQueue[messages.TokenizerMsg],
    scheduler: ZmqPushQueue[backend.BackendMsg],
    server: ZmqPushQueue[frontend.FrontendMsg],
) -> None:
    """Wait for requests, and pass them on or answer them."""
    try:
        taken = requests.get_many(_MOST_AT_ONCE)
    except DecodeError as error:
        _log.warning("a message was left out: %s", error)
        return
    for message in taken:
        if isinstance(message, messages.TokenizeMsg):
            try:
                scheduler.put(prompts.request(message))
            except RequestRefused as error:
                server.put(refusal(message.uid, error.failure))
        elif isinstance(message, messages.AbortMsg):
            scheduler.put(backend.AbortBackendMsg(message.uid))
        elif isinstance(message, messages.PingMsg):
            scheduler.put(backend.PingBackendMsg(message.uid))
        else:
            _log.warning("a %s is not for the tokenizer", type(message).__name__)

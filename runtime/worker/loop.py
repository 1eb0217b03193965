"""The inference worker: takes steps, decodes them, calls the handler, sends its replies.

    requests --> rank 0 --broadcast, raw--> ranks 1 and up
                   |                          |
               decode, stage              decode, stage       bad messages are left out alike
                   |                          |
             handler.step(messages)     handler.step(messages)
                   |
    replies  <-----'

Rank 0 alone decides what a step is: what has come, whether the handler is called without messages
because it has work left, whether it is the last one. It passes the step on before it decodes, so
all ranks do the same work at the same time. The loop is the same in every rank; `step_io` has
what differs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

from msgen.runtime.broadcast.steps import decode_messages
from msgen.runtime.codec.codec import Codec
from msgen.runtime.errors import StepDecodeError

from .clock import StepClock
from .events import RankEvents, StepFailed
from .handler import InferenceHandler
from .quarantine import Quarantine
from .step_io import StepIO
from .steps import Step


@dataclass(eq=False)
class InferenceWorker:
    """Runs a handler in one rank.

    Args:
        handler: set up already.
        io: where steps come from and replies go.
        codec: of the requests.
        limit: messages of one call of the handler, at most; larger batches are handed over in
            several calls.
        stage: brings the tensors of a step's messages to the device.
        quarantine: where messages go that are not valid; None on other ranks than rank 0.
        clock: notes the steps.
        events: takes note of pings and of errors that were answered.
    """

    handler: InferenceHandler
    io: StepIO
    codec: Codec[Any]
    _: KW_ONLY
    limit: int
    stage: Callable[[list[Any]], None]
    quarantine: Quarantine | None
    clock: StepClock
    events: RankEvents

    def run(self) -> None:
        """Take steps until the last one.

        Raises:
            StepFailed: the handler raised; its cause says what.
            MsgenError: the queues or the broadcast failed.
        """
        last = False
        while not last:
            step = self.io.next_step(self.handler.busy)
            self.clock.begin(step.number)
            self._take(step)
            for token in step.pings:
                self.events.pong(token)
            last = step.last

    def _take(self, step: Step) -> None:
        messages, bad = self._decode(step)
        self.stage(messages)
        if len(messages) > self.limit:
            replies = self._call_in_parts(step, messages)
        elif messages or step.busy:
            replies = self._call(step, messages)
        else:
            replies = []
        self.clock.end(len(messages), bad)
        try:
            self.io.reply(replies)
        except Exception as error:
            raise StepFailed(step.number, step.messages) from error

    def _decode(self, step: Step) -> tuple[list[Any], int]:
        """Return the valid messages of a step, batches opened, and how many are not valid."""
        try:
            messages = decode_messages(self.codec, step.number, step.messages)
            bad = 0
        except StepDecodeError as error:
            messages = error.messages
            bad = len(error.bad)
            if self.quarantine is not None:
                for _, frames, reason in error.bad:
                    self.quarantine.take(step.number, frames, reason)
        batch = self.codec.batch
        if batch is not None:
            for message in messages:
                if type(message) is batch:
                    return self._open_batches(messages), bad
        return messages, bad

    def _open_batches(self, messages: list[Any]) -> list[Any]:
        batch = self.codec.batch
        opened: list[Any] = []
        for message in messages:
            if type(message) is batch:
                opened += message.data
            else:
                opened.append(message)
        return opened

    def _call_in_parts(self, step: Step, messages: list[Any]) -> list[Any]:
        replies: list[Any] = []
        for start in range(0, len(messages), self.limit):
            replies += self._call(step, messages[start : start + self.limit])
        return replies

    def _call(self, step: Step, messages: list[Any]) -> list[Any]:
        try:
            replies = self.handler.step(messages)
        except Exception as error:
            replies = self._answer(step, messages, error)
        except BaseException as error:
            # Such as SystemExit, which is not the handler's to raise.
            raise StepFailed(step.number, step.messages) from error
        if not isinstance(replies, list):
            text = (
                f"step returned a {type(replies).__name__}, expected a list of replies"
            )
            raise StepFailed(step.number, step.messages) from TypeError(text)
        return replies

    def _answer(self, step: Step, messages: list[Any], error: Exception) -> list[Any]:
        try:
            replies = self.handler.on_error(messages, error)
        except BaseException as final:
            raise StepFailed(step.number, step.messages) from final
        self.events.answered(step.number, error)
        return replies

"""Events of a rank, which it sends to its pool through a pipe, as msgpack arrays.

A kind comes first. Nothing of a rank is unpickled by the process that started it.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any, Protocol

from msgen.runtime.codec import wire
from msgen.runtime.queues import Frame

AT = "at"
READY = "ready"
PONG = "pong"
ANSWERED = "answered"
FAILED = "failed"
ENDED = "ended"

MAX_FRAME_BYTES = 1 << 20
"""Bytes of a failed step's messages that are sent along: enough for prompts, and soon written."""
_LONGEST_TEXT = 100_000
"""Characters of a text: about a thousand lines of a traceback, of which the last say most."""


class StepFailed(Exception):
    """A handler raised in a step, and nobody answered; the cause is what it raised.

    Attributes:
        number: the step's.
        frames: of its messages.
    """

    def __init__(self, number: int, frames: Sequence[Sequence[Frame]]) -> None:
        super().__init__(number)
        self.number = number
        self.frames = frames


class RankEvents(Protocol):
    """Takes note of what happens in a rank."""

    def at(self, what: str) -> None:
        """It has begun to do something, on its way to be ready."""

    def ready(self, addr: str) -> None:
        """It is ready; rank 0 says where requests go."""

    def pong(self, token: bytes) -> None:
        """A ping has come through."""

    def answered(self, number: int, error: Exception) -> None:
        """Its handler has answered a step's messages with errors."""

    def failed(self, error: BaseException) -> None:
        """It cannot go on."""

    def ended(self) -> None:
        """It has ended in order."""


class PipeEvents:
    """Sends events to a pool.

    Args:
        pipe: to the pool.
    """

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()

    def at(self, what: str) -> None:
        self._send(AT, what)

    def ready(self, addr: str) -> None:
        self._send(READY, addr)

    def pong(self, token: bytes) -> None:
        self._send(PONG, token)

    def answered(self, number: int, error: Exception) -> None:
        self._send(ANSWERED, number, *describe(error))

    def failed(self, error: BaseException) -> None:
        number: int | None = None
        frames: list[list[bytes]] = []
        if isinstance(error, StepFailed) and error.__cause__ is not None:
            number, frames = error.number, _first_frames(error.frames)
            error = error.__cause__
        trace = "".join(traceback.format_exception(error))
        self._send(FAILED, *describe(error), _plain(trace), number, frames)

    def ended(self) -> None:
        self._send(ENDED)

    def _send(self, *event: Any) -> None:
        data = wire.pack(list(event))
        try:
            with self._lock:
                self._pipe.send_bytes(data)
        except OSError:
            pass  # The pool is gone; the watch ends this process.


def describe(error: BaseException) -> tuple[str, str]:
    """Return the name of an error's class, and its text."""
    cls = type(error)
    name = cls.__qualname__
    if cls.__module__ not in ("builtins", "__main__", "__mp_main__"):
        name = f"{cls.__module__}.{name}"
    try:
        text = str(error)
    except Exception:
        text = "(its text cannot be had)"
    return name, _plain(text)


def _plain(text: str) -> str:
    """Return text that can be encoded, of bounded length: its end says most."""
    if len(text) > _LONGEST_TEXT:
        text = "..." + text[-_LONGEST_TEXT:]
    return text.encode(errors="backslashreplace").decode()


def _first_frames(messages: Sequence[Sequence[Frame]]) -> list[list[bytes]]:
    """Return the frames of the first messages, as many as may be sent along."""
    first: list[list[bytes]] = []
    size = 0
    for message in messages:
        frames = [bytes(frame) for frame in message]  # type: ignore[arg-type]
        size += sum(map(len, frames))
        if size > MAX_FRAME_BYTES:
            break
        first.append(frames)
    return first

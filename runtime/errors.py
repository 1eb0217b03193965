"""Errors of the runtime, by whose fault they are: the local caller's, or the peer's."""

from __future__ import annotations

from typing import Any


class MsgenError(Exception):
    """Base class of the runtime's errors."""


_LONGEST_PATH = 500
_LONGEST_REASON = 400


class _ErrorAtPath(MsgenError):
    """An error with a place; both are one line of bounded length, whatever the peer sent."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = _one_line(path, _LONGEST_PATH)
        self.reason = _one_line(reason, _LONGEST_REASON)
        super().__init__(f"{self.path}: {self.reason}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.reason)


class EncodeError(_ErrorAtPath):
    """The caller's message does not fit its schema; nothing was sent.

    Attributes:
        path: where, such as `UserMsg.sampling_params.top_k`.
        reason: what was expected there and what was found.
    """


class DecodeError(_ErrorAtPath):
    """The peer's bytes are no valid message.

    Attributes:
        path: where, such as `UserMsg.uid`; the group's name where no message was recognised.
        reason: what was expected there and what was found.
    """


class NotAMessage(DecodeError):
    """The bytes do not begin like a message of any msgen group."""


class UnknownMessage(DecodeError):
    """The schema is the right one, but this build does not know the message.

    Attributes:
        tag: the message's tag.
    """

    def __init__(self, path: str, reason: str, tag: int) -> None:
        super().__init__(path, reason)
        self.tag = tag

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path, self.reason, self.tag)


class SchemaMismatch(DecodeError):
    """The message is of another group, or of the same group with another wire layout.

    Attributes:
        ours: this build's fingerprint, 64 hex digits.
        theirs: the peer's, 64 hex digits, where this build knows that layout; otherwise its first
            23 bits, which is all that a message carries, as 6 hex digits of which the last is even.
        difference: the first difference between the two, empty where this build does not know the
            peer's layout.
    """

    def __init__(
        self, path: str, reason: str, ours: str, theirs: str, difference: str = ""
    ) -> None:
        super().__init__(path, reason)
        self.ours = ours
        self.theirs = theirs
        self.difference = difference

    def __reduce__(self) -> tuple[Any, ...]:
        facts = (self.path, self.reason, self.ours, self.theirs, self.difference)
        return type(self), facts


def _one_line(text: str, longest: int) -> str:
    if not text.isprintable():
        text = " ".join(text.split())
    if len(text) > longest:
        half = longest // 2 - 2
        text = f"{text[:half]}...{text[-half:]}"
    return text


class QueueFull(MsgenError):
    """A queue took no message within the timeout; the message was not sent."""


class QueueEmpty(MsgenError):
    """A queue had no message within the timeout; nothing was taken."""


class QueueClosed(MsgenError):
    """A queue is used after `stop`."""

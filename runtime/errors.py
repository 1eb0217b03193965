"""Errors of the runtime, by whose fault they are: the local caller's, or the peer's."""

from __future__ import annotations

from typing import Any


class MsgenError(Exception):
    """Base class of the runtime's errors; all of them keep their attributes when pickled."""


class _WithAttributes(MsgenError):
    """An error whose constructor takes its text and then its attributes, in order."""

    _names: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (
            str(self),
            *(getattr(self, name) for name in self._names),
        )


# A log takes an error whole at these lengths, and a path of any schema in use is far shorter.
_LONGEST_PATH = 500
_LONGEST_REASON = 400


class _ErrorAtPath(MsgenError):
    """An error with a place; both are one line of bounded length, whatever the peer sent."""

    _names: tuple[str, ...] = ("path", "reason")

    def __init__(self, path: str, reason: str) -> None:
        self.path = _one_line(path, _LONGEST_PATH)
        self.reason = _one_line(reason, _LONGEST_REASON)
        super().__init__(f"{self.path}: {self.reason}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, name) for name in self._names)


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

    _names = ("path", "reason", "tag")

    def __init__(self, path: str, reason: str, tag: int) -> None:
        super().__init__(path, reason)
        self.tag = tag


class SchemaMismatch(DecodeError):
    """The message is of another group, or of the same group with another wire layout.

    Attributes:
        ours: this build's fingerprint, 64 hex digits.
        theirs: the peer's, 64 hex digits, where this build knows that layout; otherwise its first
            23 bits, which is all that a message carries, as 6 hex digits of which the last is even.
        difference: the first difference between the two, empty where this build does not know the
            peer's layout.
    """

    _names = ("path", "reason", "ours", "theirs", "difference")

    def __init__(
        self, path: str, reason: str, ours: str, theirs: str, difference: str = ""
    ) -> None:
        super().__init__(path, reason)
        self.ours = ours
        self.theirs = theirs
        self.difference = difference


class StepDecodeError(DecodeError):
    """Some messages of a step are not valid; the others are.

    Attributes:
        step: the step's sequence number.
        messages: the valid ones, in order.
        bad: for each of the others its index in the step, its frames, and its error.
    """

    _names = ("step", "messages", "bad")

    def __init__(
        self, step: int, messages: list[Any], bad: list[tuple[int, Any, DecodeError]]
    ) -> None:
        index, _, first = bad[0]
        super().__init__(
            f"step {step}, message {index}",
            f"{first} ({len(bad)} of {len(bad) + len(messages)} messages are not valid)",
        )
        self.step = step
        self.messages = messages
        self.bad = bad


def _one_line(text: str, longest: int) -> str:
    if not text.isprintable():
        text = " ".join(text.split())
    if len(text) > longest:
        half = longest // 2 - 2
        text = f"{text[:half]}...{text[-half:]}"
    return text


class QueueFull(_WithAttributes):
    """A queue took no message within the timeout; the message was not sent.

    Attributes:
        sent: how many messages of a `put_many` had been sent before; 0 for a single one.
    """

    _names = ("sent",)

    def __init__(self, text: str, sent: int = 0) -> None:
        super().__init__(text)
        self.sent = sent


class QueueEmpty(MsgenError):
    """A queue had no message within the timeout; nothing was taken."""


class QueueClosed(MsgenError):
    """A queue is used after `stop`, or while the process exits."""


class WrongThread(MsgenError):
    """A queue is used in another thread than the one that made it."""


class WrongProcess(MsgenError):
    """A queue is used in a child process that was forked after it had been made."""


class MessageTooLarge(MsgenError):
    """A message is larger than the queue lets pass; it was not sent."""


class AddressError(MsgenError, ValueError):
    """An address is malformed, too long, or cannot be bound or connected to."""


class AddressInUse(_WithAttributes, AddressError):
    """Another queue is bound to the address already.

    Attributes:
        pid: the process that holds it, where the system tells.
    """

    _names = ("pid",)

    def __init__(self, text: str, pid: int | None = None) -> None:
        super().__init__(text)
        self.pid = pid


class InsecureAddress(AddressError):
    """The address can be reached from other machines and the queue has no CURVE keys."""


class SecurityError(MsgenError, ValueError):
    """A CURVE key or key file cannot be used."""


class BroadcastError(MsgenError):
    """The steps of a broadcast cannot reach every rank, or did not."""


class SubscribersMissing(_WithAttributes, BroadcastError):
    """Not all ranks have subscribed.

    Attributes:
        ranks: the missing ones, in order.
    """

    _names = ("ranks",)

    def __init__(self, text: str, ranks: tuple[int, ...]) -> None:
        super().__init__(text)
        self.ranks = ranks


class _AboutRank(_WithAttributes, BroadcastError):
    """An error of one rank.

    Attributes:
        rank: which one.
    """

    _names = ("rank",)

    def __init__(self, text: str, rank: int) -> None:
        super().__init__(text)
        self.rank = rank


class RankLost(_AboutRank):
    """A rank that had subscribed is gone: its process ended, or its connection broke."""


class RankRefused(_AboutRank):
    """A rank announced what this publisher cannot serve."""


class RankStalled(QueueFull, BroadcastError):
    """A step could not be sent in time: a rank takes none; the step was not sent to any.

    Attributes:
        ranks: those that are furthest behind.
    """

    _names = ("ranks",)

    def __init__(self, text: str, ranks: tuple[int, ...]) -> None:
        super().__init__(text)
        self.ranks = ranks


class PublisherLost(BroadcastError):
    """The publisher is gone, and all steps that came from it were taken."""


class StepGap(_WithAttributes, BroadcastError):
    """A step is missing, or comes from another publisher than the ones before.

    Attributes:
        expected: the sequence number that should have come.
        got: the one that came.
    """

    _names = ("expected", "got")

    def __init__(self, text: str, expected: int, got: int) -> None:
        super().__init__(text)
        self.expected = expected
        self.got = got


class WorkerError(_WithAttributes):
    """A worker process failed, and its pool with it: all ranks are ended.

    Attributes:
        rank: which one failed first; None where the pool as a whole did.
        type: the name of the exception's class, such as `ValueError` or `torch.OutOfMemoryError`;
            `Exited` for a process that ended without a word, `StepTimeout` for a step that took
            too long.
        message: the exception's text.
        traceback: of the exception, or the stacks of the threads that hang; may be empty.
        messages: those of the step that failed, decoded, as many as could be sent along.
        step: its number; None outside of a step.
        exit_code: of the process, negative for a signal's number; None while it was running.
    """

    _names: tuple[str, ...] = (
        "rank",
        "type",
        "message",
        "traceback",
        "messages",
        "step",
        "exit_code",
    )

    def __init__(
        self,
        text: str,
        rank: int | None = None,
        type: str = "",  # noqa: A002
        message: str = "",
        traceback: str = "",
        messages: tuple[Any, ...] = (),
        step: int | None = None,
        exit_code: int | None = None,
    ) -> None:
        super().__init__(text)
        self.rank = rank
        self.type = type
        self.message = message
        self.traceback = traceback
        self.messages = messages
        self.step = step
        self.exit_code = exit_code


class WorkersNotReady(WorkerError):
    """Not all ranks of a pool were ready in time; all are ended.

    Attributes:
        ranks: those that were not, in order.
        traceback: the stacks of their threads.
    """

    _names = ("ranks", "traceback")

    def __init__(self, text: str, ranks: tuple[int, ...], traceback: str = "") -> None:
        super().__init__(text, ranks[0], "NotReady", text, traceback)
        self.ranks = ranks


class PingTimeout(WorkerError):
    """A ping was not answered by every rank in time; the pool goes on.

    Attributes:
        ranks: those that did not answer, in order.
    """

    _names = ("ranks",)

    def __init__(self, text: str, ranks: tuple[int, ...]) -> None:
        super().__init__(text, ranks[0], "PingTimeout", text)
        self.ranks = ranks

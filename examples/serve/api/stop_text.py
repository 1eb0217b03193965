"""Ends an answer where one of the client's stop texts begins.

A stop text may begin in one reply and end in a later one. So text that could be the beginning of one
is held back until it is clear what it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace

from msgen.generated.common import FinishReason
from msgen.generated.frontend import UserReply


class StopText:
    """Looks for stop texts in a text that comes in parts.

    Args:
        stops: the stop texts, none of them empty.

    Attributes:
        found: whether one was there.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = stops
        self._held = ""
        self.found = False

    def take(self, text: str) -> str:
        """Take the next part, and return what is now known to be before any stop text."""
        held = self._held + text
        # The one that is complete first counts, however the text was cut into parts.
        found = [
            (at + len(stop), at) for stop in self._stops if (at := held.find(stop)) >= 0
        ]
        if found:
            self.found = True
            return held[: min(found)[1]]
        keep = max(_overlap(held, stop) for stop in self._stops)
        self._held = held[len(held) - keep :]
        return held[: len(held) - keep]

    def rest(self) -> str:
        """Return what was held back, once there is no more text."""
        return self._held


def _overlap(text: str, stop: str) -> int:
    """How many characters at the text's end are the beginning of the stop text."""
    longest = min(len(text), len(stop) - 1)
    return next(
        (size for size in range(longest, 0, -1) if text.endswith(stop[:size])), 0
    )


async def until_stop(
    replies: AsyncIterator[UserReply], stops: Sequence[str], abort: Callable[[], None]
) -> AsyncIterator[UserReply]:
    """Pass replies on up to the first stop text.

    Args:
        replies: of one request.
        stops: the stop texts.
        abort: has the engine end the request; its last reply is still waited for, since it tells the
            numbers of tokens.
    """
    text = StopText(stops)
    async for reply in replies:
        if text.found:
            if reply.finished:
                yield _stopped(reply, "")
            continue
        before = text.take(reply.incremental_output)
        if text.found and reply.finished:
            yield _stopped(reply, before)
        elif text.found:
            abort()
            yield replace(reply, incremental_output=before)
        elif reply.finished:
            yield replace(reply, incremental_output=before + text.rest())
        else:
            yield replace(reply, incremental_output=before)


def _stopped(last: UserReply, text: str) -> UserReply:
    return replace(last, incremental_output=text, finish_reason=FinishReason.stop)

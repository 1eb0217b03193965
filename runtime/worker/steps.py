"""A worker's step: messages as they came, and rank 0's decisions beside them.

In the broadcast the first message of each step is rank 0's head: a msgpack array of flags and the
tokens of pings. It is always there, so that nothing that a client sends is taken for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from msgen.runtime.broadcast.steps import RawStep
from msgen.runtime.codec import wire
from msgen.runtime.queues import Frame

_BUSY = 1
_LAST = 2


@dataclass(slots=True)
class Step:
    """What all ranks do next.

    Attributes:
        number: its sequence number, from 0.
        messages: the frames of each message.
        busy: whether the handler of rank 0 has work left, so that it is called without messages,
            too.
        last: whether the ranks end after it.
        pings: tokens of those that every rank answers.
    """

    number: int
    messages: Sequence[Sequence[Frame]]
    busy: bool = False
    last: bool = False
    pings: Sequence[bytes] = ()

    def pack_head(self) -> bytes:
        """Return rank 0's head, the first message in the broadcast."""
        flags = (_BUSY if self.busy else 0) | (_LAST if self.last else 0)
        return wire.pack([flags, *self.pings])


def unpack_step(raw: RawStep) -> Step:
    """Take a step of the broadcast apart."""
    head_frames, *messages = raw.messages
    head: Any = head_frames[0]
    flags, *pings = wire.unpack(head)
    return Step(raw.number, messages, bool(flags & _BUSY), bool(flags & _LAST), pings)

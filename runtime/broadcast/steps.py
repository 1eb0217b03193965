"""The wire of a broadcast: what a step and what a subscriber's announcements look like.

A step is one multipart message: a head, then the frames of its messages as they came. The head is
eight bytes, by which ranks subscribe, and a msgpack array `[publisher, number, counts]`: a random
64-bit number that tells publishers apart, the step's sequence number from 0, and the number of
frames of each message.

A subscriber announces itself by a subscription that no step matches; so ZeroMQ tells the publisher
of its end, too. Now and then, and when it has waited for a moment, it says how many steps it has
taken, by a message upstream. `docs/runtime.md` has the bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from msgen.runtime.codec import wire
from msgen.runtime.codec.codec import Codec
from msgen.runtime.errors import BroadcastError, DecodeError, StepDecodeError
from msgen.runtime.queues.endpoint import Endpoint
from msgen.runtime.queues.frames import Frame, plain_frames

M = TypeVar("M")
T = TypeVar("T")

STEP = b"msgstep\x01"
"""What the head of each step begins with, and what ranks subscribe to.

It sorts before WHO. ZeroMQ repeats the subscriptions of a connection that it makes again in order,
and a rank that has announced itself must have subscribed to steps already.
"""
WHO = b"msgwho\x01"
"""What an announcement begins with."""
TOOK = b"msgtook\x01"
"""What a subscriber's message about its progress begins with."""

SUBSCRIBE = b"\x01"
UNSUBSCRIBE = b"\x00"


@dataclass(frozen=True)
class RawStep:
    """A step whose messages are encoded.

    Attributes:
        number: its sequence number, from 0.
        messages: the frames of each message.
    """

    number: int
    messages: Sequence[Sequence[Frame]]


def pack_head(publisher: int, number: int, counts: list[int]) -> bytes:
    """Return the head of a step."""
    return STEP + wire.pack([publisher, number, counts])


def unpack_head(head: bytes) -> tuple[int, int, list[int]]:
    """Take the head of a step apart.

    Raises:
        BroadcastError: it is malformed.
    """
    try:
        publisher, number, counts = wire.unpack(head[len(STEP) :])
        if all(type(each) is int for each in (publisher, number, *counts)) and (
            not counts or min(counts) > 0
        ):
            return publisher, number, counts
    except Exception:
        pass
    raise BroadcastError(
        f"expected the head of a step, got {len(head)} bytes that do not form one; the publisher "
        "is broken, or something else publishes there"
    )


@dataclass(frozen=True)
class Announcement:
    """What a subscriber says of itself.

    Attributes:
        rank: its rank, from 1.
        world_size: how many ranks it believes there are, rank 0 included.
        group: the group of its codec.
        fingerprint: of that group, 64 hex digits.
        instance: random bytes that tell two processes of the same rank apart.
    """

    rank: int
    world_size: int
    group: str
    fingerprint: str
    instance: bytes

    def pack(self) -> bytes:
        """Return the topic that the subscriber subscribes to."""
        return WHO + wire.pack(
            [self.rank, self.world_size, self.group, self.fingerprint, self.instance]
        )


def unpack_announcement(topic: bytes) -> Announcement | None:
    """Take a subscription's topic apart; None where it announces nothing."""
    if not topic.startswith(WHO):
        return None
    return _typed(Announcement, topic[len(WHO) :], (int, int, str, str, bytes))


@dataclass(frozen=True)
class Progress:
    """How many steps a subscriber has taken."""

    rank: int
    taken: int

    def pack(self) -> bytes:
        """Return the message upstream."""
        return TOOK + wire.pack([self.rank, self.taken])


def unpack_progress(message: bytes) -> Progress | None:
    """Take a message upstream apart; None where it is something else."""
    if not message.startswith(TOOK):
        return None
    return _typed(Progress, message[len(TOOK) :], (int, int))


def _typed(cls: type[T], data: bytes, types: tuple[type, ...]) -> T | None:
    """Unpack an array of values of the given types into a class; None where it is no such."""
    try:
        values = wire.unpack(data)
    except Exception:
        return None
    if type(values) is list and tuple(map(type, values)) == types:
        return cls(*values)
    return None


def decode_step(codec: Codec[M], step: RawStep) -> list[M]:
    """Decode the messages of a step; every rank that does so gets the same.

    Raises:
        StepDecodeError: some are not valid; it has the others, and those.
    """
    return decode_messages(codec, step.number, step.messages)


def decode_messages(
    codec: Codec[M], number: int, messages: Sequence[Sequence[Frame]]
) -> list[M]:
    """Decode the messages of a step, given without it.

    Raises:
        StepDecodeError: as for `decode_step`.
    """
    decode, decode_frames = codec.decode, codec.decode_frames
    good: list[M] = []
    bad: list[tuple[int, Any, DecodeError]] = []
    for index, frames in enumerate(messages):
        head = frames[0]
        try:
            if len(frames) == 1 and type(head) is bytes:
                good.append(decode(head))
            else:
                good.append(decode_frames(plain_frames(frames)))
        except DecodeError as error:
            bad.append((index, frames, error))
    if bad:
        raise StepDecodeError(number, good, bad)
    return good


class StepDecoder(Endpoint, Generic[M]):
    """What both ends of a broadcast share: they decode a step alike.

    Attributes:
        codec: of the group whose messages the steps hold.
    """

    codec: Codec[M]

    def decode(self, step: RawStep) -> list[M]:
        """Decode the messages of a step; every rank that does so gets the same.

        Raises:
            StepDecodeError: some are not valid; it has those that are, and counts the others.
        """
        try:
            return decode_step(self.codec, step)
        except StepDecodeError as error:
            self._decode_errors += len(error.bad)
            raise

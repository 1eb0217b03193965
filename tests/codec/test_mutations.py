"""Any change of a valid frame gives a valid message or a DecodeError, never anything else."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgen.generated import backend, frontend, tokenizer
from msgen.generated.common import SamplingParams
from msgen.runtime import DecodeError
from sizes import size
from values import ValueMaker

FRAMES = size("MSGEN_MUTATIONS", 40_000, 1_000_000)
"""Mutated frames of a run; the documented long run asks for more."""
INTERESTING = bytes(
    [0x00, 0x80, 0x90, 0xC0, 0xC1, 0xC3, 0xC4, 0xC7, 0xCA, 0xCB, 0xCF, 0xD3]
)
INTERESTING += bytes([0xD4, 0xD6, 0xD9, 0xDB, 0xDC, 0xDD, 0xDE, 0xDF, 0xE0, 0xFF])

Mutation = Callable[[random.Random, bytearray], None]


def flip_a_bit(rng: random.Random, frame: bytearray) -> None:
    frame[rng.randrange(len(frame))] ^= 1 << rng.randrange(8)


def change_a_byte(rng: random.Random, frame: bytearray) -> None:
    frame[rng.randrange(len(frame))] = rng.choice(INTERESTING)


def truncate(rng: random.Random, frame: bytearray) -> None:
    del frame[rng.randrange(len(frame)) :]


def extend(rng: random.Random, frame: bytearray) -> None:
    frame += rng.randbytes(rng.randint(1, 9))


def insert(rng: random.Random, frame: bytearray) -> None:
    frame.insert(rng.randrange(len(frame)), rng.choice(INTERESTING))


def delete(rng: random.Random, frame: bytearray) -> None:
    del frame[rng.randrange(len(frame))]


def copy_a_piece(rng: random.Random, frame: bytearray) -> None:
    start, end = sorted(rng.randrange(len(frame) + 1) for _ in range(2))
    target = rng.randrange(len(frame))
    frame[target : target + rng.randint(0, 8)] = frame[start:end]


MUTATIONS: tuple[Mutation, ...] = (
    flip_a_bit,
    change_a_byte,
    truncate,
    extend,
    insert,
    delete,
    copy_a_piece,
)


def engine_messages() -> list[tuple[Any, Any]]:
    """Messages of the engine's schema, with their codecs."""
    params = SamplingParams(temperature=0.7)
    user = backend.UserMsg(7, torch.arange(5, dtype=torch.int32), params)
    turns = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello"},
    ]
    return [
        (backend.CODEC, user),
        (backend.CODEC, backend.BatchBackendMsg([user, backend.ExitMsg(), user])),
        (tokenizer.CODEC, tokenizer.TokenizeMsg(1, turns, params)),
        (tokenizer.CODEC, tokenizer.DetokenizeMsg(1, 2, True)),
        (frontend.CODEC, frontend.UserReply(1, "text", False)),
    ]


@pytest.fixture(scope="module")
def corpus(everything_built: Any) -> list[tuple[Any, Any]]:
    """Messages of every type; drawn by hypothesis, the same in every run."""
    drawn: list[tuple[Any, Any]] = []
    codec = everything_built.module("everything").CODEC

    @settings(
        max_examples=60,
        database=None,
        derandomize=True,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def draw(data: st.DataObject) -> None:
        drawn.append((codec, ValueMaker(data, everything_built).message("everything")))

    draw()
    return engine_messages() * 6 + drawn


def check(decode: Callable[[], Any], encode: Callable[[Any], Any]) -> bool:
    """Decode; say whether a message came out, which must then be one that can be sent."""
    try:
        msg = decode()
    except DecodeError:
        return False
    encode(msg)
    return True


def test_mutated_frames_are_messages_or_decode_errors(
    corpus: list[tuple[Any, Any]],
) -> None:
    rng = random.Random(1)
    frames = [(codec, codec.encode(msg)) for codec, msg in corpus]
    valid = 0
    for _ in range(FRAMES):
        codec, frame = rng.choice(frames)
        mutated = bytearray(frame)
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            if mutated:
                rng.choice(MUTATIONS)(rng, mutated)
        data = bytes(mutated)
        valid += check(lambda: codec.decode(data), codec.encode)  # noqa: B023
    # Both outcomes must have been seen, or the frames test nothing.
    assert FRAMES * 0.01 < valid < FRAMES * 0.9


def test_mutated_heads_and_payloads_are_messages_or_decode_errors(
    corpus: list[tuple[Any, Any]],
) -> None:
    rng = random.Random(2)
    messages = [(codec, codec.encode_frames(msg, threshold=4)) for codec, msg in corpus]
    messages = [(codec, frames) for codec, frames in messages if len(frames) > 1]
    for _ in range(FRAMES // 10):
        codec, frames = rng.choice(messages)
        mutated = [bytearray(frame) for frame in frames]
        target = rng.choice(mutated)
        if target:
            rng.choice(MUTATIONS)(rng, target)
        if rng.randrange(4) == 0:
            mutated.pop(rng.randrange(len(mutated)))
        check(lambda: codec.decode_frames(mutated), codec.encode)  # noqa: B023


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=64))
def test_random_bytes_are_no_message(data: bytes) -> None:
    for codec in (backend.CODEC, tokenizer.CODEC):
        with pytest.raises(DecodeError):
            codec.decode(data)

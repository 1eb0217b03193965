"""The values that are encoded and decoded: what an engine sends most, and its large ones."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import torch

from .messages import (
    BatchTokenizerMsg,
    DetokenizeMsg,
    SamplingParams,
    TokenizeMsg,
    UserMsg,
)

UID = 12345
TOKENS = (3, 1_024, 8_192, 131_072)
BATCH = 64

# ASCII: of other text Python keeps the UTF-8 form, so all encodings but the first would be too fast.
_PROSE = (
    "the model reads every token of a prompt once and then writes one token at a time so "
    "its cache holds keys and values for what it has seen while new requests wait their turn "
    "naive schedulers pause long prompts, better ones split them; both must keep the GPU busy."
)
_CONVERSATION = (
    ("system", 420),
    ("user", 180),
    ("assistant", 1_350),
    ("user", 95),
    ("assistant", 760),
    ("user", 240),
    ("assistant", 1_900),
    ("user", 60),
)
"""Roles, and about how many characters each says."""


@dataclass(frozen=True)
class Case:
    """A value to encode and decode.

    Attributes:
        name: for the command line.
        title: for tables.
        group: whose codec takes it.
        value: made of plain dataclasses.
        encode, decode: how many times faster than msgspec the compiled engine should be.
        round_trip: how many times faster than the dict codec, for small messages.
        python: how many times faster than the dict codec the Python engine should be.
    """

    name: str
    title: str
    group: str
    value: Any
    encode: float = 1.0
    decode: float = 1.0
    round_trip: float | None = None
    python: float = 3.0


def make_cases() -> list[Case]:
    """Return all cases, the same ones every time."""
    rng = random.Random(0)
    return [
        Case(
            "detokenize",
            "DetokenizeMsg, 3 fields",
            "tokenizer",
            detokenize(UID),
            encode=1.2,
            decode=1.3,
            round_trip=15.0,
        ),
        *(
            Case(
                f"request-{tokens}",
                f"UserMsg of {tokens:,} tokens",
                "backend",
                request(UID, tokens),
                encode=5.0 if tokens == 1_024 else 1.0,
                decode=2.0 if tokens == 1_024 else 1.0,
                round_trip=15.0 if tokens == 3 else None,
                python=3.0 if tokens <= 8_192 else 1.0,
            )
            for tokens in TOKENS
        ),
        Case(
            f"batch-{BATCH}",
            f"batch of {BATCH} DetokenizeMsg",
            "tokenizer",
            BatchTokenizerMsg(
                [
                    DetokenizeMsg(UID + index, rng.randrange(128_000), index % 16 == 0)
                    for index in range(BATCH)
                ]
            ),
            encode=1.2,
            decode=1.3,
        ),
        Case(
            "conversation",
            "conversation of 8 turns",
            "tokenizer",
            TokenizeMsg(
                UID,
                [
                    {"role": role, "content": _prose(rng, length)}
                    for role, length in _CONVERSATION
                ],
                SamplingParams(temperature=0.7, top_p=0.95),
            ),
        ),
    ]


def detokenize(uid: int) -> DetokenizeMsg:
    return DetokenizeMsg(uid=uid, next_token=678, finished=False)


def request(uid: int, tokens: int) -> UserMsg:
    generator = torch.Generator().manual_seed(tokens)
    return UserMsg(
        uid=uid,
        input_ids=torch.randint(
            128_000, (tokens,), dtype=torch.int32, generator=generator
        ),
        sampling_params=SamplingParams(temperature=0.7, top_p=0.95),
    )


def _prose(rng: random.Random, length: int) -> str:
    vocabulary = _PROSE.split()
    words: list[str] = []
    while sum(map(len, words)) + len(words) < length:
        words.append(rng.choice(vocabulary))
    return " ".join(words)

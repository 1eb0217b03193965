"""The messages that go through queues: a token on its way back, and larger ones of two shapes.

A tensor costs the codec a copy of its memory, text a conversion to UTF-8, so both are measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from msgen.generated import backend, tokenizer
from msgen.generated.common import SamplingParams
from msgen.runtime.codec.codec import Codec

SMALL = "11 B"
TENSOR_4K = "4 KiB, tensor"
TEXT_4K = "4 KiB, text"
TENSOR_32K = "32 KiB, tensor"
TEXT_32K = "32 KiB, text"

BATCH = 64

_UID = 7
_ITEM = 4
"""Bytes of a token id."""


@dataclass(frozen=True)
class Case:
    """A message to send.

    Attributes:
        name: for tables.
        what: which message it is.
        codec: of its group.
        message: itself.
        data: its encoded form, which bare sockets send.
    """

    name: str
    what: str
    codec: Codec[Any]
    message: Any
    data: bytes


@cache
def make_cases() -> dict[str, Case]:
    """Return all cases by name, the same ones in every process."""
    cases = [
        _case(SMALL, tokenizer.CODEC, tokenizer.DetokenizeMsg(_UID, 678, False)),
        _case(TENSOR_4K, backend.CODEC, _fill(backend.CODEC, _request, 4 << 10, _ITEM)),
        _case(TEXT_4K, tokenizer.CODEC, _fill(tokenizer.CODEC, _prompt, 4 << 10, 1)),
        _case(
            TENSOR_32K, backend.CODEC, _fill(backend.CODEC, _request, 32 << 10, _ITEM)
        ),
        _case(TEXT_32K, tokenizer.CODEC, _fill(tokenizer.CODEC, _prompt, 32 << 10, 1)),
    ]
    return {case.name: case for case in cases}


def _case(name: str, codec: Codec[Any], message: Any) -> Case:
    return Case(name, type(message).__name__, codec, message, codec.encode(message))


def _fill(codec: Codec[Any], make: Callable[[int], Any], size: int, item: int) -> Any:
    """Make a message whose encoded form has the given size, or just less.

    Args:
        make: makes a message with so many items.
        item: bytes of each.
    """
    items = size // item
    extra = len(codec.encode(make(items))) - items * item
    return make((size - extra) // item)


def _request(tokens: int) -> backend.UserMsg:
    generator = torch.Generator().manual_seed(tokens)
    input_ids = torch.randint(
        128_000, (tokens,), dtype=torch.int32, generator=generator
    )
    return backend.UserMsg(_UID, input_ids, SamplingParams())


def _prompt(length: int) -> tokenizer.TokenizeMsg:
    # ASCII: of other text Python keeps the UTF-8 form, so all encodings but the first would be
    # too fast.
    text = ("every word of a prompt " * (length // 23 + 1))[:length]
    return tokenizer.TokenizeMsg(_UID, text, SamplingParams())

"""The benchmarks' messages as plain dataclasses, and how codecs with classes of their own join in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple

import torch


@dataclass
class SamplingParams:
    temperature: float = 0.0
    top_k: int = -1
    top_p: float = 1.0
    ignore_eos: bool = False
    max_tokens: int = 1024


@dataclass(eq=False)
class UserMsg:
    uid: int
    input_ids: torch.Tensor
    sampling_params: SamplingParams


@dataclass
class AbortBackendMsg:
    uid: int


@dataclass
class ExitMsg:
    pass


@dataclass(eq=False)
class BatchBackendMsg:
    data: list[UserMsg | AbortBackendMsg | ExitMsg]


@dataclass
class TokenizeMsg:
    uid: int
    text: str | list[dict[str, str]]
    sampling_params: SamplingParams


@dataclass
class DetokenizeMsg:
    uid: int
    next_token: int
    finished: bool


@dataclass
class AbortMsg:
    uid: int


@dataclass
class BatchTokenizerMsg:
    data: list[TokenizeMsg | DetokenizeMsg | AbortMsg]


CLASSES: dict[str, type[Any]] = {
    cls.__name__: cls
    for cls in (
        SamplingParams,
        UserMsg,
        AbortBackendMsg,
        ExitMsg,
        BatchBackendMsg,
        TokenizeMsg,
        DetokenizeMsg,
        AbortMsg,
        BatchTokenizerMsg,
    )
}


class Coder(NamedTuple):
    """How a peer encodes and decodes the messages of one group."""

    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


@dataclass(frozen=True)
class Peer:
    """A codec that takes part.

    Attributes:
        name: as the tables show it.
        classes: its classes of the messages, by name; all have the same fields.
        coders: what encodes and decodes the groups, by the group's name.
    """

    name: str
    classes: Mapping[str, type[Any]]
    coders: Mapping[str, Coder]


def convert(value: Any, classes: Mapping[str, type[Any]]) -> Any:
    """Rebuild a plain value from a peer's classes."""
    if is_dataclass(value):
        arguments = {
            field.name: convert(getattr(value, field.name), classes)
            for field in fields(value)
        }
        return classes[type(value).__name__](**arguments)
    if isinstance(value, list):
        return [convert(item, classes) for item in value]
    return value


def difference(plain: Any, other: Any, path: str = "message") -> str | None:
    """Say where a peer's value differs from the plain one, None where it does not."""
    same = type(plain).__name__ == type(other).__name__
    if same and is_dataclass(plain):
        names = [field.name for field in fields(plain)]
        parts = [
            (f"{path}.{name}", getattr(plain, name), getattr(other, name))
            for name in names
        ]
    elif same and isinstance(plain, list) and len(plain) == len(other):
        parts = [
            (f"{path}[{index}]", *pair) for index, pair in enumerate(zip(plain, other))
        ]
    else:
        if same and isinstance(plain, torch.Tensor):
            same = plain.dtype is other.dtype and torch.equal(plain, other)
        elif same:
            same = bool(plain == other)
        return None if same else f"{path}: expected {plain!r}, got {other!r}"
    found = (difference(one, two, where) for where, one, two in parts)
    return next((each for each in found if each is not None), None)

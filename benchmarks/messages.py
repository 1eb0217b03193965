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


def difference(plain: Any, other: Any, path: str = "") -> str | None:
    """Say where a peer's value differs from the plain one, None where it does not."""
    if is_dataclass(plain):
        if type(other).__name__ != type(plain).__name__:
            return f"{path}: expected {type(plain).__name__}, got {other!r}"
        path = path or type(plain).__name__
        pairs = (
            (
                f"{path}.{each.name}",
                getattr(plain, each.name),
                getattr(other, each.name),
            )
            for each in fields(plain)
        )
        return _first_difference(pairs)
    if isinstance(plain, list) and type(other) is list and len(plain) == len(other):
        return _first_difference(
            (f"{path}[{index}]", *pair) for index, pair in enumerate(zip(plain, other))
        )
    if isinstance(plain, torch.Tensor):
        if (
            isinstance(other, torch.Tensor)
            and plain.dtype is other.dtype
            and torch.equal(plain, other)
        ):
            return None
    elif type(plain) is type(other) and plain == other:
        return None
    return f"{path}: expected {plain!r}, got {other!r}"


def _first_difference(pairs: Any) -> str | None:
    return next(
        (
            found
            for path, plain, other in pairs
            if (found := difference(plain, other, path)) is not None
        ),
        None,
    )

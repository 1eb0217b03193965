"""Dimension symbols: one symbol of a message has the same size in all its tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from . import table
from .frames import Unfit


def check_symbols(value: Any, record: table.Record) -> None:
    """Raise Unfit where a symbol has two sizes in the tensors of a struct or message."""
    if find_conflict(value, record) is not None:
        raise Unfit


def find_conflict(value: Any, record: table.Record) -> str | None:
    """Describe the first symbol that has two sizes, None where there is none."""
    sizes: dict[str, tuple[int, str]] = {}
    for field in record.live_fields:
        for path, dims, tensor in _tensors(
            getattr(value, field.name), field.type, field.name
        ):
            for dim, size in zip(dims, tensor.shape):
                if isinstance(dim, str) and dim != "_":
                    known, where = sizes.setdefault(dim, (size, path))
                    if known != size:
                        return f"dimension '{dim}' is {known} in {where} and {size} in {path}"
    return None


def _tensors(
    value: Any, type_: table.Type, path: str
) -> Iterator[tuple[str, tuple[int | str, ...], torch.Tensor]]:
    """Yield the tensors of a value with their paths and declared dimensions."""
    if isinstance(type_, table.Tensor):
        if (
            type_.dims
            and isinstance(value, torch.Tensor)
            and value.dim() == len(type_.dims)
        ):
            yield path, type_.dims, value
    elif isinstance(type_, table.Nullable):
        yield from _tensors(value, type_.item, path)
    elif isinstance(type_, table.Union):
        for option in type_.options:
            if isinstance(option, table.Tensor) or _is_container_of(value, option):
                yield from _tensors(value, option, path)
    elif isinstance(type_, table.List) and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _tensors(item, type_.item, f"{path}[{index}]")
    elif isinstance(type_, table.Tuple) and isinstance(value, tuple):
        for index, (item, item_type) in enumerate(zip(value, type_.items)):
            yield from _tensors(item, item_type, f"{path}[{index}]")
    elif isinstance(type_, table.Dict) and isinstance(value, dict):
        for key, item in value.items():
            yield from _tensors(item, type_.value, f"{path}[{key!r}]")


def _is_container_of(value: Any, option: table.Type) -> bool:
    kinds = {table.List: list, table.Tuple: tuple, table.Dict: dict}
    kind = kinds.get(type(option))
    return kind is not None and isinstance(value, kind)

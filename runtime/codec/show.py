"""Values in error texts: short, on one line, and never an error of their own."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from typing import Any

import torch

LONGEST = 100
"""Most characters of a value in a text."""
MOST = 6
"""Most items of a list of names in a text."""

_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = 60
_repr.maxlong = 40
_repr.maxlevel = 2


def show(value: Any) -> str:
    """Describe a value by its class and itself: `str 'abc'`."""
    if value is None:
        return "None"
    if isinstance(value, torch.Tensor):
        # As the schema language spells its type: tensor[int64, 3].
        dtype = str(value.dtype).removeprefix("torch.")
        return f"tensor[{', '.join((dtype, *map(str, value.shape)))}]"
    return f"{_cut(type(value).__name__)} {short(value)}"


def short(value: Any) -> str:
    """Return a value's repr, cut to what a line can hold."""
    try:
        return _cut(_repr.repr(value))
    except Exception:
        return "(its repr fails)"


def listed(names: Iterable[object], separator: str) -> str:
    """Join names, the first few of many."""
    shown = [str(name) for name in names]
    if len(shown) > MOST:
        shown[MOST - 1 :] = [f"{len(shown) - MOST + 1} more"]
    return separator.join(shown)


def _cut(text: str) -> str:
    text = " ".join(text.split()) if "\n" in text or "\r" in text else text
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."

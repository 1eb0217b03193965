"""Values in error texts: short, and whatever the value does, never an error of their own."""

from __future__ import annotations

import reprlib
from typing import Any

import torch

from . import tensors

_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = 60
_repr.maxlong = 40


def show(value: Any) -> str:
    """Describe a value by its class and itself: `str 'abc'`."""
    if value is None:
        return "None"
    if isinstance(value, torch.Tensor):
        return tensors.show(value)
    name = type(value).__name__
    try:
        return f"{name} {_repr.repr(value)}"
    except Exception:
        return f"{name} (its repr fails)"

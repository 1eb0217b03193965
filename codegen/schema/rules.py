"""The rows of all findings of the loader and of lint; each stands beside its finder."""

from __future__ import annotations

from . import lint, loader, names, recursion
from .declare import enums, evolution, groups, limits
from .rule import Rule
from .sections import reader
from .types import defaults, expression, resolve, scope, unions
from .yaml import compose, events

_MODULES = (
    *(loader, events, compose, reader, names),
    *(groups, enums, limits, evolution),
    *(scope, expression, resolve, unions, defaults, recursion),
    lint,
)

# A module that imports the row of another has it too; it counts once.
RULES: tuple[Rule, ...] = tuple(
    dict.fromkeys(
        each
        for module in _MODULES
        for each in vars(module).values()
        if isinstance(each, Rule)
    )
)
"""In the order in which a file meets them."""

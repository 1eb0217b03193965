"""The rules of a diff, from the files of their finders."""

from __future__ import annotations

from . import findings, waivers
from .changes import (
    defaults,
    enums,
    fields,
    groups,
    messages,
    names,
    pairs,
    scalars,
    slots,
    tensors,
    types,
)
from .changes.change import ChangeRule

_FILES = (
    *(groups, messages, fields, slots, pairs, defaults),
    *(types, scalars, tensors, names, enums, findings, waivers),
)
RULES: dict[str, ChangeRule] = {
    rule.id: rule
    for file in _FILES
    for rule in vars(file).values()
    if isinstance(rule, ChangeRule) and rule.finder.__module__ == file.__name__
}

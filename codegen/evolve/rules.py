"""The rules of a diff, from the files of their finders."""

from __future__ import annotations

from . import findings, waivers
from .changes import (
    defaults,
    enums,
    fields,
    groups,
    messages,
    pairs,
    scalars,
    slots,
    tensors,
    type_names,
    types,
)
from .changes.change import ChangeRule

_FILES = (
    *(groups, messages, fields, slots, pairs, defaults),
    *(types, scalars, tensors, type_names, enums, findings, waivers),
)
RULES: dict[str, ChangeRule] = {
    rule.id: rule
    for file in _FILES
    for rule in vars(file).values()
    if isinstance(rule, ChangeRule) and rule.finder.__module__ == file.__name__
}

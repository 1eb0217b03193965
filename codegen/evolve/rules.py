"""The rules of a diff, from the files of their finders."""

from __future__ import annotations

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
from .findings import LAYOUT_CHANGED
from .waivers import WAIVER_EXPIRED, WAIVER_UNUSED

RULES: dict[str, ChangeRule] = {
    rule.id: rule
    for rule in (
        *groups.RULES,
        *messages.RULES,
        LAYOUT_CHANGED,
        *slots.RULES,
        *fields.RULES,
        *pairs.RULES,
        *defaults.RULES,
        *types.RULES,
        *scalars.RULES,
        *tensors.RULES,
        *names.RULES,
        *enums.RULES,
        WAIVER_EXPIRED,
        WAIVER_UNUSED,
    )
}

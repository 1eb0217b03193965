"""Numbers and limits in two versions; each finder takes two types of one kind."""

from __future__ import annotations

from collections.abc import Iterator

from msgen.codegen.schema import model
from msgen.codegen.schema.model import INT_RANGES, Type
from msgen.codegen.schema.rule import NOTE, WARNING

from .change import ADD_ANOTHER, COUNTED, ChangeRule, Delta


def int_changed(old: model.IntType, new: model.IntType) -> Iterator[Delta]:
    if old.width != new.width:
        yield Delta(INT_CHANGED, old, new, (_holds(new, old), _holds(old, new)))


def _holds(wide: model.IntType, narrow: model.IntType) -> bool:
    low, high = INT_RANGES[narrow.width]
    return INT_RANGES[wide.width][0] <= low and high <= INT_RANGES[wide.width][1]


INT_CHANGED = ChangeRule(
    "INT_CHANGED",
    "an integer has another width or sign",
    f"{COUNTED}the narrower side refuses numbers out of its range.",
    ADD_ANOTHER,
    finder=int_changed,
    before="fields:\n  count: {type: u8, default: 0}",
    after="version: 2\nfields:\n  count: {type: u8, default: 0, removed: true}\n"
    "  total: {type: u32, default: 0, since: 2}",
)


def float_changed(old: model.FloatType, new: model.FloatType) -> Iterator[Delta]:
    if old.bits != new.bits:
        wider = new.bits > old.bits
        yield Delta(FLOAT_CHANGED, old, new, (wider, not wider))


FLOAT_CHANGED = ChangeRule(
    "FLOAT_CHANGED",
    "a float has another width",
    f"{COUNTED}the narrower side refuses numbers out of its range.",
    ADD_ANOTHER,
    finder=float_changed,
)


def limit_changed(old: Type, new: Type) -> Iterator[Delta]:
    """Yield what a changed `finite` or `max_len` means, of types that may have one."""
    was, now = getattr(old, "finite", False), getattr(new, "finite", False)
    if was != now:
        yield _limit("finite", was, now, now)
    was, now = getattr(old, "max_len", None), getattr(new, "max_len", None)
    if was != now:
        tighter = now is not None and (was is None or now < was)
        yield _limit("max_len", was, now, tighter)


def _limit(key: str, was: object, now: object, tighter: bool) -> Delta:
    rule = LIMIT_TIGHTENED if tighter else LIMIT_LOOSENED
    old, new = (f"{key}: {str(each).lower()}" for each in (was, now))
    return Delta(rule, old, new, (not tighter, tighter), key, counts=False)


LIMIT_TIGHTENED = ChangeRule(
    "LIMIT_TIGHTENED",
    "`max_len` or `finite` allows less than it did",
    "Limits are not in the fingerprint. New readers refuse messages of old writers that were "
    "within the old limit.",
    "upgrade the senders first, which then refuse such values themselves.",
    finder=limit_changed,
    harmless=NOTE,
)
LIMIT_LOOSENED = ChangeRule(
    "LIMIT_LOOSENED",
    "`max_len` or `finite` allows more than it did",
    "Limits are not in the fingerprint. Old readers refuse messages of new writers that are "
    "beyond the old limit.",
    "upgrade the receiver first.",
    finder=limit_changed,
    severity=WARNING,
    harmless=NOTE,
)

LIMITS = (LIMIT_TIGHTENED, LIMIT_LOOSENED)

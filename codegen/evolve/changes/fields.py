"""A field that is in both versions: its name, its type, its default, and whether it is removed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from msgen.codegen.schema import model
from msgen.codegen.schema.model import spell
from msgen.codegen.schema.rule import NOTE, WARNING

from .change import Change, ChangeRule, Delta, Node, Ref, find_all
from .defaults import RULES as DEFAULT_RULES
from .pairs import SINCE_LOWERED, SINCE_RAISED, Both, renamed
from .types import FIELD_RETYPED, NULLABLE_CHANGED, UNION_CHANGED, TypeComparer


@dataclass(frozen=True)
class Held:
    """A declared type that a field holds in both versions.

    Attributes:
        counts: the fingerprint sees it there, as long as it sees the field's record.
        is_key: it is the key of a dict.
    """

    field: Both[model.Field]
    node: Node
    counts: bool
    is_key: bool

    @property
    def is_live(self) -> bool:
        return not (self.field.old.removed or self.field.new.removed)


def compare_field(
    both: Both[model.Field], types: TypeComparer
) -> Iterator[Change | Held]:
    """Yield the changes of a field, and the declared types that it holds."""
    old, new = both.old, both.new
    if _is_same(old, new):
        return
    yield from find_all(_OF_BOTH, both)
    live = not old.removed and not new.removed
    retyped = False
    for found in types.compare(old.type, new.type):
        if not isinstance(found, Delta):
            counts = found.counts and old.since == new.since == 1
            yield Held(both, found.node, counts, found.is_key)
        elif live:
            retyped = retyped or found.rule is FIELD_RETYPED
            yield _type_change(both, found)
        else:
            yield from removed_slot_changed(both, found)
    if live and not retyped:
        yield from find_all(DEFAULT_RULES, both, types.old, types.new)


def _is_same(old: model.Field, new: model.Field) -> bool:
    """Say whether nothing changed, and nothing is held whose content may have: most fields."""
    return (
        old.default is None
        and new.default is None
        and (old.name, old.was, old.since, old.removed)
        == (new.name, new.was, new.since, new.removed)
        and old.type == new.type
        and not _names_a_type(old.type)
    )


@cache
def _names_a_type(type_: model.Type) -> bool:
    return any(isinstance(part, Ref) for part in model.walk(type_))


def _type_change(both: Both[model.Field], delta: Delta) -> Change:
    before, now, part = _shown(both, delta)
    verbs = ("is", "was") if delta.key == "type" else ("has", "had")
    return both.change(
        delta.rule,
        f"{both.what} {verbs[0]} '{now}', {verbs[1]} '{before}'{part}",
        before,
        now,
        delta.key,
        counts=both.counts and delta.counts,
        new_takes_old=delta.new_takes_old,
        old_takes_new=delta.old_takes_new,
        source=delta.rule in (FIELD_RETYPED, NULLABLE_CHANGED, UNION_CHANGED),
    )


def removed_slot_changed(both: Both[model.Field], delta: Delta) -> Iterator[Change]:
    before, now, part = _shown(both, delta)
    yield both.change(
        REMOVED_SLOT_CHANGED,
        f"removed {both.what} is '{now}', was '{before}'{part}",
        before,
        now,
        delta.key,
        counts=both.counts and delta.counts,
    )


def _shown(both: Both[model.Field], delta: Delta) -> tuple[str, str, str]:
    """Return the field's types or the limits that differ, and the part of the types that does."""
    if delta.key != "type":
        return delta.old, delta.new, ""
    before, now = spell(both.old.type), spell(both.new.type)
    part = "" if delta.old == before else f" ('{delta.new}', was '{delta.old}')"
    return before, now, part


REMOVED_SLOT_CHANGED = ChangeRule(
    "REMOVED_SLOT_CHANGED",
    "the type of a removed field changed",
    "A removed field stays in the fingerprint as it was; its type is the only record of what "
    "older builds write there.",
    "put the old type back.",
    finder=removed_slot_changed,
    harmless=NOTE,
)


def takes_nil(field: model.Field) -> bool:
    """Say whether a reader of a field stands the nil that stands for a removed one."""
    nil_types = (model.NullableType, model.AnyType)
    return isinstance(field.type, nil_types) or field.default is not None


def field_removed(both: Both[model.Field]) -> Iterator[Change]:
    if both.new.removed and not both.old.removed:
        stands = takes_nil(both.old)
        lack = "" if stands else ", and is neither nullable nor has a default"
        yield both.change(
            FIELD_REMOVED,
            f"{both.what} is removed{lack}",
            spell(both.old.type),
            "removed",
            "removed",
            old_takes_new=stands,
            source=True,
        )


FIELD_REMOVED = ChangeRule(
    "FIELD_REMOVED",
    "a field is marked `removed: true`",
    "The slot is written as nil. Readers that still have the field take nil for its default, "
    "or for None; where it has no default and is not nullable they refuse every message.",
    "give the field a default first, in all builds that read it; then remove it. Or upgrade "
    "the receiver first.",
    finder=field_removed,
    before="fields:\n  best_of: {type: int, default: 1}",
    after="fields:\n  best_of: {type: int, default: 1, removed: true}",
)


def field_restored(both: Both[model.Field]) -> Iterator[Change]:
    if both.old.removed and not both.new.removed:
        yield both.change(
            FIELD_RESTORED,
            f"{both.what} was removed, and is back",
            "removed",
            spell(both.new.type),
            new_takes_old=takes_nil(both.new),
            source=both.new.default is None,
        )


FIELD_RESTORED = ChangeRule(
    "FIELD_RESTORED",
    "a field is no longer marked `removed`",
    "Builds in between write nil in its slot, which a reader takes for the default, or for "
    "None; without either it refuses the message.",
    "give it a default, or add a field of another name at the end.",
    finder=field_restored,
)


def field_renamed(both: Both[model.Field]) -> Iterator[Change]:
    source = not both.new.removed
    return renamed(both, FIELD_RENAMED, FIELD_RENAMED_WITHOUT_WAS, "was", source=source)


FIELD_RENAMED = ChangeRule(
    "FIELD_RENAMED",
    "a field has a new name and says `was`",
    "The fingerprint keeps the old name, so peers see no difference. Code that uses the field "
    "has to use its new name.",
    "this is the way to rename: change the code with it.",
    finder=field_renamed,
    severity=WARNING,
    before="fields:\n  text: str",
    after="fields:\n  prompt: {type: str, was: text}",
)
FIELD_RENAMED_WITHOUT_WAS = ChangeRule(
    "FIELD_RENAMED_WITHOUT_WAS",
    "a field has another name in the fingerprint, or may be another field in its slot",
    "A new name in a slot may be a rename or another meaning. Names of fields of version 1 "
    "count in the fingerprint, so that the second is not misread; for later fields nothing "
    "shows it.",
    "say `was:` with the name that the fingerprint knows, and leave it so at later renames.",
    finder=field_renamed,
    before="fields:\n  text: str",
    after="fields:\n  prompt: {type: str, was: text}",
    misread=True,
)

_OF_BOTH = (
    FIELD_RENAMED,
    FIELD_RENAMED_WITHOUT_WAS,
    SINCE_LOWERED,
    SINCE_RAISED,
    FIELD_REMOVED,
    FIELD_RESTORED,
)
RULES = (
    FIELD_REMOVED,
    FIELD_RESTORED,
    FIELD_RENAMED,
    FIELD_RENAMED_WITHOUT_WAS,
    REMOVED_SLOT_CHANGED,
)

"""A field that is in both versions: its name, its type, its default, and whether it is removed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from msgen.codegen.schema import model
from msgen.codegen.schema.model import spell
from msgen.codegen.schema.rule import NOTE, WARNING

from .change import Change, ChangeRule, Delta, Ref, find_all
from .defaults import DEFAULT_CHANGED, DEFAULT_REMOVED
from .pairs import SINCE_LOWERED, SINCE_RAISED, Both, renamed
from .types import FIELD_RETYPED, Held, TypeDiffer


def diff_field(both: Both[model.Field], types: TypeDiffer) -> Iterator[Change | Held]:
    """Yield the changes of a field, and the declared types that it holds."""
    old, new = both.old, both.new
    if _is_same(old, new):
        return
    yield from find_all(_OF_BOTH, both)
    retyped = False
    for found in types.diff(both):
        if isinstance(found, Delta):
            retyped = retyped or found.rule is FIELD_RETYPED
            yield type_changed(both, found)
        else:
            yield found
    if not (retyped or old.removed or new.removed):
        yield from find_all(
            (DEFAULT_CHANGED, DEFAULT_REMOVED), both, types.old, types.new
        )


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


def type_changed(both: Both[model.Field], delta: Delta) -> Change:
    old, new, part, verbs = delta.old, delta.new, "", ("has", "had")
    if delta.key == "type":
        if old != both.old.type:
            part = f" ('{_text(new)}', was '{_text(old)}')"
        old, new, verbs = both.old.type, both.new.type, ("is", "was")
    before, now = _text(old), _text(new)
    counts = both.counts and delta.counts
    if both.old.removed or both.new.removed:
        rule, effect = REMOVED_SLOT_CHANGED, {}
        text = f"removed {both.what} is '{now}', was '{before}'{part}"
    else:
        rule, effect = delta.rule, {"takes": delta.takes, "source": delta.source}
        text = f"{both.what} {verbs[0]} '{now}', {verbs[1]} '{before}'{part}"
    return both.change(rule, text, before, now, delta.key, counts=counts, **effect)


def _text(part: model.Type | str) -> str:
    return part if isinstance(part, str) else spell(part)


REMOVED_SLOT_CHANGED = ChangeRule(
    "REMOVED_SLOT_CHANGED",
    "the type of a removed field changed",
    "A removed field stays in the fingerprint as it was; its type is the only record of what "
    "older builds write there.",
    "put the old type back.",
    finder=type_changed,
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
        values = (spell(both.old.type), "removed")
        effect = {"takes": (True, stands), "source": True}
        text = f"{both.what} is removed{lack}"
        yield both.change(FIELD_REMOVED, text, *values, "removed", **effect)


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
        values = ("removed", spell(both.new.type))
        effect = {
            "takes": (takes_nil(both.new), True),
            "source": both.new.default is None,
        }
        text = f"{both.what} was removed, and is back"
        yield both.change(FIELD_RESTORED, text, *values, **effect)


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

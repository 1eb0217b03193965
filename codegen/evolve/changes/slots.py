"""The slots of a struct or message in two versions: which field stands in each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgen.codegen.schema import model
from msgen.codegen.schema.model import spell
from msgen.codegen.schema.rule import ERROR, NOTE

from .change import Change, ChangeRule
from .fields import FIELD_RENAMED_WITHOUT_WAS, takes_nil
from .pairing import Alignment
from .pairs import Both, RecordPair, since_wrong_version


def diff_slots(pair: RecordPair, aligned: Alignment) -> Iterator[Change]:
    """Yield what became of the slots: moved, taken by another field, new, or gone."""
    olds, news = pair.old.fields, pair.new.fields
    for i, j in aligned.moved:
        yield from field_moved(pair.both(olds[i], news[j]), i + 1, j + 1)
    for i, j in aligned.replaced:
        yield from slot_reused(pair.both(olds[i], news[j]))
    placed = (*aligned.kept, *aligned.moved, *aligned.replaced)
    last_old = max((i for i, _ in placed), default=-1)
    last_new = max((j for _, j in placed), default=-1)
    for j in aligned.added:
        yield from field_added(pair, news[j], j > last_new)
    for i in aligned.gone:
        yield from field_deleted(pair, olds[i], i > last_old)


def field_added(pair: RecordPair, new: model.Field, last: bool) -> Iterator[Change]:
    both: Both[Any] = Both(pair.old, new, "", pair.subject(new), pair.what(new))
    first_version = new.since == 1
    if not last:
        rule, lack = FIELD_INSERTED, " and stands before others"
    elif first_version:
        rule, lack = FIELD_ADDED_WITHOUT_SINCE, " and has no 'since'"
    else:
        rule, lack = FIELD_ADDED, f", 'since: {new.since}'"
    text, takes = f"{both.what} is new{lack}", (last and not first_version, last)
    effect = {"counts": first_version, "takes": takes, "source": new.default is None}
    yield both.change(rule, text, "", spell(new.type), **effect)
    yield from since_wrong_version(both, pair.known_version)


FIELD_ADDED = ChangeRule(
    "FIELD_ADDED",
    "a field is new, at the end, with `since` and a default",
    "Old readers ignore the slot, new readers of old messages take the default.",
    "nothing to do: this is the way to add a field.",
    finder=field_added,
    severity=NOTE,
    harmless=NOTE,
    before="version: 1\nfields:\n  uid: int",
    after="version: 2\nfields:\n  uid: int\n  priority: {type: int, default: 0, since: 2}",
)
FIELD_ADDED_WITHOUT_SINCE = ChangeRule(
    "FIELD_ADDED_WITHOUT_SINCE",
    "a new field has no `since`, so it counts as one that was always there",
    "The fingerprint changes and builds refuse each other. Where the fingerprint does not see "
    "the field, as in a struct that only later fields hold, new readers miss the slot in old "
    "messages.",
    "raise the group's `version`, and give the field that `since` and a default.",
    finder=field_added,
    before="fields:\n  uid: int",
    after="version: 2\nfields:\n  uid: int\n  priority: {type: int, default: 0, since: 2}",
)
FIELD_INSERTED = ChangeRule(
    "FIELD_INSERTED",
    "a new field stands before others",
    "A field's place is its slot. All fields behind it move by one, and where the fingerprint "
    "does not count them, peers read one for the other.",
    "move it to the end, with `since` and a default.",
    finder=field_added,
    before="fields:\n  uid: int",
    after="version: 2\nfields:\n  uid: int\n  urgent: {type: bool, default: false, since: 2}",
    misread=True,
)


def field_moved(both: Both[model.Field], before: int, now: int) -> Iterator[Change]:
    text = f"{both.what} is in slot {now}, was in slot {before}"
    yield both.counted(FIELD_MOVED, text, f"slot {before}", f"slot {now}")


FIELD_MOVED = ChangeRule(
    "FIELD_MOVED",
    "fields changed their order",
    "A field's place is its slot. Two fields of one type that change places would be read one "
    "for the other; the fingerprint sees it for fields of version 1 only.",
    "put them back in their order.",
    finder=field_moved,
    misread=True,
)


def field_deleted(pair: RecordPair, old: model.Field, last: bool) -> Iterator[Change]:
    subject = pair.old_subject(old)
    both: Both[Any] = Both(old, pair.new, subject, subject, pair.what(old))
    text = f"{'removed ' if old.removed else ''}{both.what} is gone from the file"
    first_version, takes = old.since == 1, (last, last and old.since > 1)
    effect = {"counts": first_version, "takes": takes, "source": not old.removed}
    yield both.change(FIELD_DELETED, text, spell(old.type), "", **effect)


FIELD_DELETED = ChangeRule(
    "FIELD_DELETED",
    "a field is gone from the file",
    "The slots behind it move by one. Where it was the last, its slot is free to be taken by "
    "another field, which old builds would read as the old one.",
    "keep its line and mark it `removed: true`.",
    finder=field_deleted,
    before="fields:\n  uid: int\n  best_of: {type: int, default: 1}",
    after="fields:\n  uid: int\n  best_of: {type: int, default: 1, removed: true}",
    misread=True,
)


def slot_reused(both: Both[model.Field]) -> Iterator[Change]:
    old, new = both.old, both.new
    before, now = spell(old.type), spell(new.type)
    if before == now and not old.removed and not new.removed:
        rule, values = FIELD_RENAMED_WITHOUT_WAS, (old.name, new.name)
        text = f"{both.what} stands in the slot of '{old.name}', of the same type"
    else:
        rule, values = SLOT_REUSED, (f"{old.name}: {before}", f"{new.name}: {now}")
        removed = "removed " if old.removed else ""
        text = f"{both.what} stands in the slot of {removed}'{values[0]}'"
    takes = (
        new.removed or (old.removed and takes_nil(new)),
        old.removed or (new.removed and takes_nil(old)),
    )
    yield both.counted(rule, text, *values, takes=takes, source=True)


SLOT_REUSED = ChangeRule(
    "SLOT_REUSED",
    "another field stands in the slot of one that is gone or removed",
    "Peers read the one for the other, or refuse what does not fit. This also holds for the "
    "slot of a removed field, which older builds still write.",
    "keep the old field as `removed: true` and add the new one at the end.",
    finder=slot_reused,
    harmless=ERROR,
    before="fields:\n  uid: int\n  text: {type: str, default: ''}",
    after="version: 2\nfields:\n  uid: int\n  text: {type: str, default: '', removed: true}\n"
    "  tokens: {type: 'list[int]', default: [], since: 2}",
    misread=True,
)

"""The slots of a struct or message in two versions: which field stands in each."""

from __future__ import annotations

from collections.abc import Iterator

from msgen.codegen.schema import model
from msgen.codegen.schema.model import spell

from .change import Change
from .pairing import Alignment
from .records import RecordPair, kind_of, maker, since_of_addition, takes_nil


def compare_slots(pair: RecordPair, aligned: Alignment) -> Iterator[Change]:
    """Yield what became of the slots: moved, taken by another field, new, or gone."""
    olds, news = pair.old.fields, pair.new.fields
    for i, j in aligned.moved:
        old, new = olds[i], news[j]
        yield maker(pair, old, new)(
            "FIELD_MOVED",
            f"{pair.what(new)} is in slot {j + 1}, was in slot {i + 1}",
            f"slot {i + 1}",
            f"slot {j + 1}",
            counts=1 in (old.since, new.since),
            new_takes_old=False,
            old_takes_new=False,
        )
    for i, j in aligned.replaced:
        yield _replaced(pair, olds[i], news[j])
    placed = (*aligned.kept, *aligned.moved, *aligned.replaced)
    last_old = max((i for i, _ in placed), default=-1)
    last_new = max((j for _, j in placed), default=-1)
    for j in aligned.added:
        yield from _added(pair, news[j], j > last_new)
    for i in aligned.gone:
        yield _gone(pair, olds[i], i > last_old)


def _replaced(pair: RecordPair, old: model.Field, new: model.Field) -> Change:
    make, slot = maker(pair, old, new), f"'{old.name}: {spell(old.type)}'"
    counts = 1 in (old.since, new.since)
    if not old.removed and not new.removed and spell(old.type) == spell(new.type):
        return make(
            "FIELD_RENAMED_WITHOUT_WAS",
            f"{pair.what(new)} stands in the slot of '{old.name}', of the same type",
            old.name,
            new.name,
            counts=counts,
            new_takes_old=False,
            old_takes_new=False,
            source=True,
        )
    removed = "removed " if old.removed else ""
    return make(
        "SLOT_REUSED",
        f"{pair.what(new)} stands in the slot of {removed}{slot}",
        f"{old.name}: {spell(old.type)}",
        f"{new.name}: {spell(new.type)}",
        counts=counts,
        new_takes_old=new.removed or (old.removed and takes_nil(new)),
        old_takes_new=old.removed or (new.removed and takes_nil(old)),
        source=True,
    )


def _added(pair: RecordPair, new: model.Field, last: bool) -> Iterator[Change]:
    what, subject = pair.what(new), pair.subject(new)
    rule, text = "FIELD_ADDED", f"{what} is new, 'since: {new.since}'"
    if not last:
        rule, text = "FIELD_INSERTED", f"{what} is new and stands before others"
    elif new.since == 1:
        rule, text = "FIELD_ADDED_WITHOUT_SINCE", f"{what} is new and has no 'since'"
    yield Change(
        rule,
        subject,
        new.place,
        pair.old.place,
        text,
        "",
        spell(new.type),
        counts=new.since == 1,
        new_takes_old=last and new.since > 1,
        old_takes_new=last,
        source=new.default is None,
    )
    yield from since_of_addition(what, subject, new, pair.known_version)


def _gone(pair: RecordPair, old: model.Field, last: bool) -> Change:
    kind = kind_of(pair.new)
    removed = "removed " if old.removed else ""
    return Change(
        "FIELD_DELETED",
        pair.old_subject(old),
        pair.new.place,
        old.place,
        f"{removed}field '{old.name}' of {kind} '{pair.new.name}' is gone from the file",
        spell(old.type),
        "",
        pair.old_subject(old),
        counts=old.since == 1,
        new_takes_old=last,
        old_takes_new=last and old.since > 1,
        source=not old.removed,
    )

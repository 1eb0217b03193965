"""The fields of a struct or message in two versions: what became of every slot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from . import model
from .changes import Change, Ref
from .compare_defaults import same_default, spell_default
from .compare_dims import compare_symbols
from .compare_types import Delta, TypeComparer
from .errors import KeyPlaces, Place
from .model import spell
from .pairing import Alignment, align_fields, wire_name


def key_place(thing: Any, *keys: str) -> Place:
    """Return where the value of the first key that a declaration has stands, or the declaration."""
    places: KeyPlaces = thing.keys
    found = dict(places)
    place: Place = next((found[key] for key in keys if key in found), thing.place)
    return place


def kind_of(record: model.Record) -> str:
    if isinstance(record, model.Message):
        return "batch" if record.is_batch else "message"
    return "struct"


@dataclass(frozen=True)
class RecordPair:
    """A struct or message in both versions.

    Attributes:
        known_version: the version of the old group that declares it, None where it moved.
    """

    old: model.Record
    new: model.Record
    known_version: int | None

    def subject(self, field: model.Field) -> str:
        return f"{self.new.group}.{self.new.name}.{field.name}"

    def old_subject(self, field: model.Field) -> str:
        return f"{self.old.group}.{self.old.name}.{field.name}"

    def what(self, field: model.Field) -> str:
        return f"field '{field.name}' of {kind_of(self.new)} '{self.new.name}'"


@dataclass(frozen=True)
class FieldComparer:
    """Compares the fields of records.

    Attributes:
        types: makes the comparer of the types of one field in both versions.
    """

    old_schema: model.Schema
    new_schema: model.Schema
    types: Callable[[model.Field, model.Field], TypeComparer]

    def compare(self, pair: RecordPair) -> Iterator[Change]:
        aligned = align_fields(pair.old.fields, pair.new.fields)
        both = [
            (pair.old.fields[i], pair.new.fields[j])
            for i, j in sorted(
                (*aligned.kept, *aligned.moved), key=lambda each: each[1]
            )
        ]
        for old, new in both:
            yield from self._same_field(pair, old, new)
        yield from self._order(pair, aligned)
        yield from self._symbols(pair, both)

    def _same_field(
        self, pair: RecordPair, old: model.Field, new: model.Field
    ) -> Iterator[Change]:
        if _is_same(old, new):
            return
        what, counts = pair.what(new), 1 in (old.since, new.since)
        make = _maker(pair, old, new)
        if wire_name(old) != wire_name(new):
            yield make(
                "FIELD_RENAMED_WITHOUT_WAS",
                f"{what} counts as '{wire_name(new)}' in the fingerprint, which knows it as "
                f"'{wire_name(old)}'",
                old.name,
                new.name,
                "was",
                counts=counts,
                source=old.name != new.name,
            )
        elif old.name != new.name:
            yield make(
                "FIELD_RENAMED",
                f"{what} was called '{old.name}'",
                old.name,
                new.name,
                "was",
                source=not new.removed,
            )
        yield from since_changes(make, what, old, new)
        if new.removed and not old.removed:
            yield make(
                "FIELD_REMOVED",
                f"{what} is removed"
                + (
                    ""
                    if _takes_nil(old)
                    else ", and is neither nullable nor has a default"
                ),
                spell(old.type),
                "removed",
                "removed",
                old_takes_new=_takes_nil(old),
                source=True,
            )
        if old.removed and not new.removed:
            yield make(
                "FIELD_RESTORED",
                f"{what} was removed, and is back",
                "removed",
                spell(new.type),
                new_takes_old=_takes_nil(new),
                source=new.default is None,
            )
        live = not old.removed and not new.removed
        deltas = self.types(old, new).compare(old.type, new.type)
        for delta in deltas:
            yield _type_change(make, what, delta, counts, live, old, new)
        if live and not any(each.rule == "FIELD_RETYPED" for each in deltas):
            yield from self._default(make, what, old, new)

    def _default(
        self, make: _Make, what: str, old: model.Field, new: model.Field
    ) -> Iterator[Change]:
        if old.default is None:
            return
        before = spell_default(old.default.value)
        if new.default is None:
            yield make(
                "DEFAULT_REMOVED",
                f"{what} has no default any more",
                before,
                "none",
                source=True,
            )
        elif not same_default(self.old_schema, old, self.new_schema, new):
            now = spell_default(new.default.value)
            text = f"the default of {what} is {now}, was {before}"
            yield make("DEFAULT_CHANGED", text, before, now, "default")

    def _order(self, pair: RecordPair, aligned: Alignment) -> Iterator[Change]:
        olds, news = pair.old.fields, pair.new.fields
        for i, j in aligned.moved:
            old, new = olds[i], news[j]
            yield _maker(pair, old, new)(
                "FIELD_MOVED",
                f"{pair.what(new)} is in slot {j + 1}, was in slot {i + 1}",
                f"slot {i + 1}",
                f"slot {j + 1}",
                counts=1 in (old.since, new.since),
                new_takes_old=False,
                old_takes_new=False,
            )
        for i, j in aligned.replaced:
            yield self._replaced(pair, olds[i], news[j])
        placed = (*aligned.kept, *aligned.moved, *aligned.replaced)
        last_old = max((i for i, _ in placed), default=-1)
        last_new = max((j for _, j in placed), default=-1)
        for j in aligned.added:
            yield from _added(pair, news[j], j > last_new)
        for i in aligned.gone:
            yield _gone(pair, olds[i], i > last_old)

    def _replaced(self, pair: RecordPair, old: model.Field, new: model.Field) -> Change:
        make, slot = _maker(pair, old, new), f"'{old.name}: {spell(old.type)}'"
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
            new_takes_old=new.removed or (old.removed and _takes_nil(new)),
            old_takes_new=old.removed or (new.removed and _takes_nil(old)),
            source=True,
        )

    def _symbols(
        self, pair: RecordPair, both: list[tuple[model.Field, model.Field]]
    ) -> Iterator[Change]:
        alive = [each for each in both if not each[0].removed and not each[1].removed]
        if all(old.type == new.type for old, new in alive):
            return
        told = set()
        for change in compare_symbols(alive):
            if (change.field, change.old_ties) in told:
                continue
            told.add((change.field, change.old_ties))
            old, new = alive[change.field]
            other = alive[change.other][1].name
            size = f"the size '{change.symbol}' with '{other}'"
            yield _maker(pair, old, new)(
                "DIM_SYMBOL_LOOSENED" if change.old_ties else "DIM_SYMBOL_TIGHTENED",
                f"{pair.what(new)} need not share {size} any more"
                if change.old_ties
                else f"{pair.what(new)} has to share {size} now",
                spell(old.type),
                spell(new.type),
                "type",
                new_takes_old=change.old_ties,
                old_takes_new=not change.old_ties,
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


_Make = Callable[..., Change]


def _maker(pair: RecordPair, old: model.Field, new: model.Field) -> _Make:
    def make(
        rule: str, text: str, was: str, now: str, *keys: str, **effect: bool
    ) -> Change:
        return Change(
            rule,
            pair.subject(new),
            key_place(new, *keys),
            key_place(old, *keys),
            text,
            was,
            now,
            pair.old_subject(old),
            **effect,
        )

    return make


def _takes_nil(field: model.Field) -> bool:
    """Say whether a reader of a field stands the nil that stands for a removed one."""
    nil_types = (model.NullableType, model.AnyType)
    return isinstance(field.type, nil_types) or field.default is not None


def _type_change(
    make: _Make,
    what: str,
    delta: Delta,
    counts: bool,
    live: bool,
    old: model.Field,
    new: model.Field,
) -> Change:
    before, now = (
        (spell(old.type), spell(new.type))
        if delta.key == "type"
        else (delta.old, delta.new)
    )
    part = "" if delta.old == before else f" ('{delta.new}', was '{delta.old}')"
    if not live:
        return make(
            "REMOVED_SLOT_CHANGED",
            f"removed {what} is '{now}', was '{before}'{part}",
            before,
            now,
            delta.key,
            counts=counts and delta.counts,
        )
    text = (
        f"{what} is '{now}', was '{before}'{part}"
        if delta.key == "type"
        else f"{what} has '{now}', had '{before}'"
    )
    return make(
        delta.rule,
        text,
        before,
        now,
        delta.key,
        counts=counts and delta.counts,
        new_takes_old=delta.new_takes_old,
        old_takes_new=delta.old_takes_new,
        source=delta.rule in ("FIELD_RETYPED", "NULLABLE_CHANGED", "UNION_CHANGED"),
    )


def since_changes(make: _Make, what: str, old: Any, new: Any) -> Iterator[Change]:
    """Yield what a changed `since` of a message, field or enum member means."""
    if old.since != new.since:
        lowered = new.since < old.since
        yield make(
            "SINCE_LOWERED" if lowered else "SINCE_RAISED",
            f"{what} has 'since: {new.since}', had 'since: {old.since}'",
            str(old.since),
            str(new.since),
            "since",
            counts=1 in (old.since, new.since),
        )


def since_of_addition(
    what: str, subject: str, new: Any, known_version: int | None
) -> Iterator[Change]:
    """Yield a finding where something new claims to be as old as a version that is known."""
    if known_version is not None and 1 < new.since <= known_version:
        yield Change(
            "SINCE_WRONG_VERSION",
            subject,
            key_place(new, "since"),
            None,
            f"{what} is new and has 'since: {new.since}', but version {known_version} of its group "
            "is there already, without it",
            "",
            str(new.since),
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

"""The fields of a struct or message in two versions: those that are in both, and their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from msgen.codegen.schema import model
from msgen.codegen.schema.model import spell

from .change import Change, Ref
from .defaults import same_default, spell_default
from .dims import compare_symbols
from .pairing import align_fields, wire_name
from .records import Make, RecordPair, maker, since_changes, takes_nil
from .slots import compare_slots
from .types import Delta, TypeComparer


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
        yield from compare_slots(pair, aligned)
        yield from self._symbols(pair, both)

    def _same_field(
        self, pair: RecordPair, old: model.Field, new: model.Field
    ) -> Iterator[Change]:
        if _is_same(old, new):
            return
        what, counts = pair.what(new), 1 in (old.since, new.since)
        make = maker(pair, old, new)
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
                    if takes_nil(old)
                    else ", and is neither nullable nor has a default"
                ),
                spell(old.type),
                "removed",
                "removed",
                old_takes_new=takes_nil(old),
                source=True,
            )
        if old.removed and not new.removed:
            yield make(
                "FIELD_RESTORED",
                f"{what} was removed, and is back",
                "removed",
                spell(new.type),
                new_takes_old=takes_nil(new),
                source=new.default is None,
            )
        live = not old.removed and not new.removed
        deltas = self.types(old, new).compare(old.type, new.type)
        for delta in deltas:
            yield _type_change(make, what, delta, counts, live, old, new)
        if live and not any(each.rule == "FIELD_RETYPED" for each in deltas):
            yield from self._default(make, what, old, new)

    def _default(
        self, make: Make, what: str, old: model.Field, new: model.Field
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
            yield maker(pair, old, new)(
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


def _type_change(
    make: Make,
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

"""What the comparers of records share: a record in both versions, and how changes are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from msgen.codegen.schema import model
from msgen.codegen.schema.errors import KeyPlaces, Place

from .change import Change

Make: TypeAlias = Callable[..., Change]
"""Makes a change of one thing: rule, text, old, new, keys whose place it has, and its effect."""


def maker(pair: RecordPair, old: model.Field, new: model.Field) -> Make:
    """Return what makes changes of a field that is in both versions, or of two in one slot."""

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


def key_place(thing: Any, *keys: str) -> Place:
    """Return where the value of the first key that a declaration has stands, or the declaration."""
    places: KeyPlaces = thing.keys
    found = dict(places)
    place: Place = next((found[key] for key in keys if key in found), thing.place)
    return place


def kind_of(record: model.Record) -> str:
    """`struct`, `message` or `batch`."""
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


def takes_nil(field: model.Field) -> bool:
    """Say whether a reader of a field stands the nil that stands for a removed one."""
    nil_types = (model.NullableType, model.AnyType)
    return isinstance(field.type, nil_types) or field.default is not None


def since_changes(make: Make, what: str, old: Any, new: Any) -> Iterator[Change]:
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

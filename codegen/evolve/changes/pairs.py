"""What the files beside share: a thing in both versions, and changes of it; `since` and `was`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from msgen.codegen.schema import model
from msgen.codegen.schema.errors import KeyPlaces, Place
from msgen.codegen.schema.rule import WARNING

from .change import NEITHER, Change, ChangeRule

Versioned: TypeAlias = model.Message | model.Field | model.EnumMember
"""What says `since` and `was`."""


class Declared(Protocol):
    """What stands in a schema file."""

    @property
    def place(self) -> Place: ...
    @property
    def keys(self) -> KeyPlaces: ...


T = TypeVar("T", bound=Declared)


def wire_name(thing: Versioned) -> str:
    """Return the name that counts in the fingerprint."""
    return thing.was or thing.name


def key_place(thing: Declared, *keys: str) -> Place:
    """Return where the value of the first key that a declaration has stands, or the declaration."""
    found = dict(thing.keys)
    return next((found[key] for key in keys if key in found), thing.place)


def kind_of(record: model.Record) -> str:
    """`struct`, `message` or `batch`."""
    if isinstance(record, model.Message):
        return "batch" if record.is_batch else "message"
    return "struct"


@dataclass(frozen=True)
class Both(Generic[T]):
    """One thing in both versions, or two that stand in one slot.

    Attributes:
        old, new: where a version does not have it, what enclosed it there.
        old_subject, subject: its dotted names.
        what: how texts call it.
    """

    old: T
    new: T
    old_subject: str
    subject: str
    what: str

    @property
    def counts(
        self: Both[model.Message] | Both[model.Field] | Both[model.EnumMember],
    ) -> bool:
        """Whether the fingerprint of one version sees it."""
        return 1 in (self.old.since, self.new.since)

    def change(
        self,
        rule: ChangeRule,
        text: str,
        was: object,
        now: object,
        *keys: str,
        **effect: Any,
    ) -> Change:
        """Return a change of it, at the place of the first of ``keys`` that it has."""
        places = (key_place(self.new, *keys), key_place(self.old, *keys))
        names = (str(was), str(now), self.old_subject)
        return Change(rule, self.subject, *places, text, *names, **effect)

    def counted(
        self: Both[model.Message] | Both[model.Field] | Both[model.EnumMember],
        rule: ChangeRule,
        text: str,
        was: object,
        now: object,
        *keys: str,
        takes: tuple[bool, bool] = NEITHER,
        source: bool = False,
    ) -> Change:
        """Return a change that counts in the fingerprint where the thing does."""
        effect = {"counts": self.counts, "takes": takes, "source": source}
        return self.change(rule, text, was, now, *keys, **effect)


@dataclass(frozen=True)
class RecordPair:
    """A struct or message in both versions.

    Attributes:
        known_version: the version of the old group that declares it, None where it moved.
    """

    old: model.Record
    new: model.Record
    known_version: int | None

    def both(self, old: model.Field, new: model.Field) -> Both[model.Field]:
        """Return a field in both versions, or two fields that stand in one slot."""
        return Both(old, new, self.old_subject(old), self.subject(new), self.what(new))

    def subject(self, field: model.Field) -> str:
        return f"{self.new.group}.{self.new.name}.{field.name}"

    def old_subject(self, field: model.Field) -> str:
        return f"{self.old.group}.{self.old.name}.{field.name}"

    def what(self, field: model.Field) -> str:
        return f"field '{field.name}' of {kind_of(self.new)} '{self.new.name}'"


def renamed(
    both: Both[Any],
    rule: ChangeRule,
    without_was: ChangeRule,
    *keys: str,
    source: bool = True,
) -> Iterator[Change]:
    """Yield that a thing has another name: in the fingerprint, where no `was` keeps the old one."""
    old, new = both.old, both.new
    before, now = wire_name(old), wire_name(new)
    differ = old.name != new.name
    if before != now:
        text = f"{both.what} counts as '{now}' in the fingerprint, which knows it as '{before}'"
        effect = {"counts": both.counts, "source": differ}
        yield both.change(without_was, text, old.name, new.name, *keys, **effect)
    elif differ:
        text = f"{both.what} was called '{old.name}'"
        yield both.change(rule, text, old.name, new.name, "was", source=source)


def since_changed(both: Both[Any]) -> Iterator[Change]:
    """Yield what a changed `since` of a message, field or enum member means."""
    old, new = both.old.since, both.new.since
    if old != new:
        rule = SINCE_LOWERED if new < old else SINCE_RAISED
        text = f"{both.what} has 'since: {new}', had 'since: {old}'"
        yield both.change(rule, text, old, new, "since", counts=both.counts)


SINCE_LOWERED = ChangeRule(
    "SINCE_LOWERED",
    "`since` is lower than it was",
    "`since` says which builds lack a thing. At 1 it enters the fingerprint, and a reader no "
    "longer fills it in for older writers.",
    "put the old `since` back.",
    finder=since_changed,
)
SINCE_RAISED = ChangeRule(
    "SINCE_RAISED",
    "`since` is higher than it was",
    "Builds of the version it had before do have the thing. What was of version 1 leaves the "
    "fingerprint.",
    "put the old `since` back.",
    finder=since_changed,
)


def since_wrong_version(both: Both[Any], known_version: int | None) -> Iterator[Change]:
    """Yield a change where something new claims to be as old as a version that is known.

    Args:
        known_version: the version of the old group that declares it, None where it moved.
    """
    since = both.new.since
    if known_version is not None and 1 < since <= known_version:
        text = (
            f"{both.what} is new and has 'since: {since}', but version {known_version} of its group "
            "is there already, without it"
        )
        places = (key_place(both.new, "since"), None)
        yield Change(SINCE_WRONG_VERSION, both.subject, *places, text, "", str(since))


SINCE_WRONG_VERSION = ChangeRule(
    "SINCE_WRONG_VERSION",
    "something new claims a version that was there without it",
    "Peers are not hurt, since readers fill in what is missing. But `since` no longer says "
    "which builds have it, and `build --at-version` makes a module that never was.",
    "raise the group's `version`, and set `since` to it.",
    finder=since_wrong_version,
    severity=WARNING,
    before="version: 2\nfields:\n  uid: int",
    after="version: 3\nfields:\n  uid: int\n  priority: {type: int, default: 0, since: 3}",
)

"""What a diff finds first: changes, each with its row of the table of findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from msgen.codegen.schema import model
from msgen.codegen.schema.errors import Place
from msgen.codegen.schema.rule import WARNING, Rule

Ref: TypeAlias = model.StructType | model.MessageType | model.EnumType
"""A declared type: what a change can be about, and what messages reach."""

ADD_ANOTHER = (
    "keep the field, add another of the new type at the end with `since`, and remove the old one "
    "when nobody reads it."
)
"""What to do instead of changing the type of a field."""
COUNTED = (
    "Types of fields of version 1 count in the fingerprint, so builds refuse each other. For later "
    "fields nothing shows the change: "
)
"""Why changing the type of a field breaks peers; the rule says how the sentence ends."""


@dataclass(frozen=True, kw_only=True)
class ChangeRule(Rule):
    """A kind of change; `severity` is where a peer breaks.

    Whether a change breaks a peer depends on where it stands and who reads it, so a row has two
    severities.

    Attributes:
        harmless: the severity where no peer breaks, and at most code has to change.
        before, after: an example of the safe way, as lines of a schema.
        misread: a peer that the fingerprint does not stop may read other values, without an error;
            where this is False it raises a DecodeError.
    """

    harmless: str = WARNING
    before: str = ""
    after: str = ""
    misread: bool = False


def find_all(rules: Iterable[ChangeRule], *things: Any) -> Iterator[Any]:
    """Yield what the finders of some rules yield; a finder may serve several rules."""
    for finder in dict.fromkeys(rule.finder for rule in rules):
        found: Any = finder(*things)
        yield from found


NEITHER = (False, False)
"""What a change says that no reader of the other version takes."""


@dataclass(frozen=True)
class Node:
    """A declared type in both versions; None where one version does not have it."""

    old: Ref | None
    new: Ref | None


@dataclass(frozen=True)
class Change:
    """One difference, judged by itself; which messages it reaches is not known yet.

    Attributes:
        subject: dotted name in the new version, or in the old one of what is gone.
        place: in the new files; of what encloses it where the thing itself is gone.
        old_place: in the old files, None where there was nothing.
        text: what changed, as a sentence without a full stop.
        counts: it touches what the fingerprint is made of.
        takes: whether a new reader takes what an old writer wrote, with the right values, and
            whether an old reader takes what a new writer writes.
        source: code that uses the generated module has to change.
        deployment: the bytes are read, by another process.
    """

    rule: ChangeRule
    subject: str
    place: Place
    old_place: Place | None
    text: str
    old: str = ""
    new: str = ""
    old_subject: str = ""
    counts: bool = False
    takes: tuple[bool, bool] = (True, True)
    source: bool = False
    deployment: bool = False


@dataclass(frozen=True)
class Delta:
    """A difference between two types of one field, of which a change of the field is made.

    Attributes:
        old, new: the parts of the types that differ, or their limits as they are written.
        key: the key of the field that holds it.
        counts: the fingerprint sees it.
    """

    rule: ChangeRule
    old: model.Type | str
    new: model.Type | str
    takes: tuple[bool, bool]
    key: str = "type"
    counts: bool = True
    source: bool = False

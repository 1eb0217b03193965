"""A row of the table of rules."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """A kind of change.

    Attributes:
        id: stable, since waivers and people name it.
        purpose: what it finds, in a line.
        severity: `error`, `warning` or `note` where a peer breaks.
        harmless: the same where no peer does, and at most code has to change.
        why: what would happen.
        instead: what to do.
        before, after: an example of the safe way, as lines of a schema.
        misread: a peer that the fingerprint does not stop may read other values, without an error;
            where this is False it raises a DecodeError.
    """

    id: str
    purpose: str
    severity: str
    harmless: str
    why: str
    instead: str
    before: str = ""
    after: str = ""
    misread: bool = False

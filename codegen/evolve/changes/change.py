"""What a diff is made of: changes, which were found, and findings, which say what they mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from msgen.codegen.schema import model
from msgen.codegen.schema.errors import Place

Ref: TypeAlias = model.StructType | model.MessageType | model.EnumType
"""A declared type: what a change can be about, and what messages reach."""

ERROR, WARNING, NOTE = "error", "warning", "note"

OK, BROKEN, REFUSED = "ok", "broken", "refused"
"""What becomes of messages in one direction. `refused` is the safe way of being broken: the
fingerprints differ, so the reader raises SchemaMismatch at once. `broken` messages have the
fingerprint that the reader expects; some of them cannot be decoded, or are read as other values."""

WIRE, SOURCE, DEPLOYMENT, NOTHING = "wire", "source", "deployment", "nothing"


@dataclass(frozen=True)
class Node:
    """A declared type in both versions; None where one version does not have it."""

    old: Ref | None
    new: Ref | None


@dataclass(frozen=True)
class Change:
    """One difference, judged by itself; which messages it reaches is not known yet.

    Attributes:
        rule: a key of rules.RULES.
        subject: dotted name in the new version, or in the old one of what is gone.
        place: in the new files; of what encloses it where the thing itself is gone.
        old_place: in the old files, None where there was nothing.
        text: what changed, as a sentence without a full stop.
        counts: it touches what the fingerprint is made of.
        new_takes_old: a new reader takes what an old writer wrote, with the right values.
        old_takes_new: an old reader takes what a new writer writes, with the right values.
        source: code that uses the generated module has to change.
    """

    rule: str
    subject: str
    place: Place
    old_place: Place | None
    text: str
    old: str = ""
    new: str = ""
    old_subject: str = ""
    counts: bool = False
    new_takes_old: bool = True
    old_takes_new: bool = True
    source: bool = False
    deployment: bool = False


@dataclass(frozen=True)
class Waiver:
    """A break that the schema's authors decided on; see waivers.py."""

    rule: str
    subject: str
    reason: str
    until: str
    place: Place


@dataclass(frozen=True)
class Finding:
    """A change, with everything that it means.

    Attributes:
        severity: `error` where a peer breaks; `warning` where nothing does as long as the roll-out
            keeps its order, or where only code has to change; `note` otherwise.
        breaks: `wire`, `source`, `deployment` (the bytes are read, by another process) or
            `nothing`.
        new_reads_old: `ok`, `broken` or `refused`: new readers of old messages.
        old_reads_new: the same for old readers of new messages.
        messages: those that it is about, as `group.Message`, by their new names.
        old_messages: the same by their old names.
        readers: processes that read them.
        senders: processes that send them.
        rollout: in which order to upgrade.
    """

    change: Change
    severity: str
    breaks: str
    new_reads_old: str
    old_reads_new: str
    groups: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    old_messages: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()
    senders: tuple[str, ...] = ()
    rollout: str = ""
    waiver: Waiver | None = None

    @property
    def is_breaking(self) -> bool:
        """Whether it makes a run fail."""
        return self.severity == ERROR and self.waiver is None


@dataclass(frozen=True)
class GroupVerdict:
    """What becomes of one group's messages between the two versions."""

    group: str
    receiver: str
    same_fingerprint: bool
    new_reads_old: str
    old_reads_new: str
    rollout: str


@dataclass(frozen=True)
class Comparison:
    """Two versions of a schema, compared.

    Attributes:
        against: how the user called the old version.
        label: what it stands for, such as a commit's id.
    """

    against: str
    label: str
    findings: tuple[Finding, ...]
    verdicts: tuple[GroupVerdict, ...] = field(default=())
    rollout: str = ""

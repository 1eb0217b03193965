"""What a diff ends in: findings, which say what each change means, and a verdict for each group."""

from __future__ import annotations

from dataclasses import dataclass

from msgen.codegen.schema.errors import Place
from msgen.codegen.schema.rule import ERROR

from .changes import Change

OK, BROKEN, REFUSED = "ok", "broken", "refused"
"""What becomes of messages in one direction. `refused` is the safe way of being broken: the
fingerprints differ, so the reader raises SchemaMismatch at once. `broken` messages have the
fingerprint that the reader expects; some of them cannot be decoded, or are read as other values."""

WIRE, SOURCE, DEPLOYMENT, NOTHING = "wire", "source", "deployment", "nothing"


@dataclass(frozen=True)
class Waiver:
    """A break that the schema's authors decided on."""

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
    breaks: str = NOTHING
    new_reads_old: str = OK
    old_reads_new: str = OK
    groups: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    old_messages: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()
    senders: tuple[str, ...] = ()
    rollout: str = "any order"
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
class Diff:
    """Two versions of a schema, compared.

    Attributes:
        against: how the user called the old version.
        label: what it stands for, such as a commit's id.
    """

    against: str
    label: str
    findings: tuple[Finding, ...]
    verdicts: tuple[GroupVerdict, ...] = ()
    rollout: str = ""

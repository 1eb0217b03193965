"""What the formats for people say in words: who breaks, how, and in which order to upgrade."""

from __future__ import annotations

from collections.abc import Iterator

from msgen.codegen.evolve import (
    BROKEN,
    DEPLOYMENT,
    OK,
    REFUSED,
    SOURCE,
    WIRE,
    Diff,
    Finding,
    GroupVerdict,
)
from msgen.codegen.evolve.changes.groups import GROUP_REMOVED
from msgen.codegen.schema.errors import Place


def details(finding: Finding, place: Place) -> Iterator[str]:
    change = finding.change
    if change.old and change.old_place and change.old_place.path != place.path:
        yield f"was: {change.old_place}"
    meaning = _meaning(finding)
    if meaning:
        yield meaning
    names = finding.messages or finding.old_messages
    if names and finding.breaks == WIRE:
        yield f"messages: {_shortened(names)}"
    if finding.readers and meaning:
        senders = ", ".join(finding.senders) or "not named"
        yield f"processes: readers {', '.join(finding.readers)}; senders {senders}"
    if finding.breaks in (WIRE, DEPLOYMENT):
        yield f"roll out: {finding.rollout}"
    if finding.waiver is not None:
        yield f"waived until {finding.waiver.until}: {finding.waiver.reason}"


def _meaning(finding: Finding) -> str:
    """Say in one sentence who breaks."""
    ways = (finding.new_reads_old, finding.old_reads_new)
    if ways == (REFUSED, REFUSED):
        return (
            f"wire: the fingerprint of {_shortened(finding.groups)} changes, so old and new builds "
            "refuse each other's messages"
        )
    if finding.change.rule is GROUP_REMOVED and BROKEN in ways:
        return "wire: nobody reads what senders that are not upgraded send"
    if ways != (OK, OK):
        how = (
            "fail or read other values without an error, since the fingerprint stays"
            if finding.change.rule.misread
            else "fail with a DecodeError where they meet it"
        )
        new, old = "new readers of old messages", "old readers of new"
        if OK not in ways:
            return f"wire: {new} and {old} ones {how}"
        if ways[0] == OK:
            return f"wire: {old} messages {how}; new readers of old ones do not"
        return f"wire: {new} {how}; {old} ones do not"
    return {
        DEPLOYMENT: "deployment: the bytes stay readable, but another process gets them",
        SOURCE: "source: code that uses the generated module has to change; no peer breaks",
    }.get(finding.breaks, "")


def _shortened(names: tuple[str, ...], most: int = 6) -> str:
    more = len(names) - most
    listed = ", ".join(names[:most])
    return f"{listed} and {more} more" if more > 0 else listed


def verdict_line(verdict: GroupVerdict) -> str:
    """Say in one line what becomes of the messages of a group."""
    ways = (verdict.new_reads_old, verdict.old_reads_new)
    if not verdict.same_fingerprint:
        what = "fingerprint changed, old and new builds refuse each other"
    elif ways == (OK, OK):
        what = "compatible both ways"
    else:
        readers = ("new readers of old messages", "old readers of new messages")
        breaks = " and ".join(text for text, way in zip(readers, ways) if way != OK)
        what = f"same fingerprint; {breaks} may break"
    return f"group {verdict.group}: {what}; roll out: {verdict.rollout}"


def heading(diff: Diff) -> str:
    """`against main (1a2b3c4d5e6f)`."""
    return f"against {diff.against} ({diff.label})"

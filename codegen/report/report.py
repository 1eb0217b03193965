"""One report of a run: comparisons with older versions, lint, and modules that are out of date."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from msgen.codegen.evolve.changes.change import (
    BROKEN,
    DEPLOYMENT,
    ERROR,
    NOTE,
    OK,
    REFUSED,
    SOURCE,
    WARNING,
    WIRE,
    Comparison,
    Finding,
    GroupVerdict,
)
from msgen.codegen.evolve.rules.table import RULES
from msgen.codegen.schema.errors import Place, Problem
from msgen.codegen.schema.texts import counted

STALE = "stale-module"
"""The rule of a generated module that is not up to date."""


@dataclass(frozen=True)
class Result:
    """One line of a report, whatever part of the run it comes from.

    Attributes:
        level: `error`, `warning` or `note`.
        details: more lines, for people.
        waived: the reason of the waiver that allows it.
        identity: what stays the same when its line moves.
    """

    level: str
    rule: str
    place: Place
    text: str
    details: tuple[str, ...] = ()
    waived: str | None = None
    identity: str = ""


@dataclass(frozen=True)
class Report:
    """Everything that a run found.

    Attributes:
        schema_dir: the schema folder, as the user gave it.
        about_waivers: findings about waivers, which are of no comparison.
        skipped: versions that could not be compared, with the reason.
        stale: kind and path of generated files that are not up to date.
    """

    schema_dir: Path
    comparisons: tuple[Comparison, ...] = ()
    about_waivers: tuple[Finding, ...] = ()
    skipped: tuple[str, ...] = ()
    lint: tuple[Problem, ...] = ()
    stale: tuple[tuple[str, str], ...] = field(default=())

    def results(self) -> Iterator[Result]:
        """Yield all results, in the order in which a reader wants them."""
        for problem in self.lint:
            yield Result(
                problem.severity,
                problem.rule.id,
                problem.place,
                problem.message,
                identity=problem.message,
            )
        for kind, path in self.stale:
            yield Result(
                ERROR,
                STALE,
                Place(path),
                f"generated module is {kind}; run 'msgen build {self.schema_dir.as_posix()}'",
                identity=path,
            )
        for comparison in self.comparisons:
            for finding in comparison.findings:
                yield self.result(finding)
        for finding in self.about_waivers:
            yield self.result(finding)

    def result(self, finding: Finding) -> Result:
        """Return a finding of a comparison as a result."""
        change = finding.change
        return Result(
            finding.severity,
            change.rule,
            self.located(change.place),
            change.text,
            tuple(_details(finding, self.located(change.place))),
            None if finding.waiver is None else finding.waiver.reason,
            f"{change.subject} {change.old} {change.new}",
        )

    def located(self, place: Place) -> Place:
        """Return a place in the files of today; what is only in old files has its old line there."""
        folder = self.schema_dir.as_posix()
        inside = place.path.removeprefix("" if folder == "." else f"{folder}/")
        if "/" not in inside and ":" not in inside:
            return place
        name = place.path.rpartition("/")[2].rpartition(":")[2]
        return place._replace(path=(self.schema_dir / name).as_posix())

    def counts(self) -> Counter[str]:
        """Return how many results there are of each level, and how many are `waived`."""
        return Counter(
            "waived" if each.waived is not None else each.level
            for each in self.results()
        )

    def fails(self, strict: bool) -> bool:
        """Say whether the run found something that makes it fail."""
        if self.lint or self.stale:
            return True
        counts = self.counts()
        return bool(counts[ERROR] or (strict and counts[WARNING]))


def _details(finding: Finding, place: Place) -> Iterator[str]:
    change = finding.change
    if change.old and change.old_place and change.old_place.path != place.path:
        yield f"was: {change.old_place}"
    meaning = meaning_of(finding)
    if meaning:
        yield meaning
    names = finding.messages or finding.old_messages
    if names and finding.breaks == WIRE:
        yield f"messages: {_shortened(names)}"
    if finding.readers and meaning:
        yield f"processes: {_processes(finding)}"
    if finding.breaks in (WIRE, DEPLOYMENT):
        yield f"roll out: {finding.rollout}"
    if finding.waiver is not None:
        yield f"waived until {finding.waiver.until}: {finding.waiver.reason}"


def meaning_of(finding: Finding) -> str:
    """Say in one sentence who breaks."""
    ways = (finding.new_reads_old, finding.old_reads_new)
    if ways == (REFUSED, REFUSED):
        return (
            f"wire: the fingerprint of {_shortened(finding.groups)} changes, so old and new builds "
            "refuse each other's messages"
        )
    if finding.change.rule == "GROUP_REMOVED" and BROKEN in ways:
        return "wire: nobody reads what senders that are not upgraded send"
    if BROKEN in ways or REFUSED in ways:
        how = (
            "fail or read other values without an error, since the fingerprint stays"
            if RULES[finding.change.rule].misread
            else "fail with a DecodeError where they meet it"
        )
        if OK not in ways:
            return (
                f"wire: new readers of old messages and old readers of new ones {how}"
            )
        if ways[0] == OK:
            return f"wire: old readers of new messages {how}; new readers of old ones do not"
        return (
            f"wire: new readers of old messages {how}; old readers of new ones do not"
        )
    if finding.breaks == DEPLOYMENT:
        return "deployment: the bytes stay readable, but another process gets them"
    if finding.breaks == SOURCE:
        return (
            "source: code that uses the generated module has to change; no peer breaks"
        )
    return ""


def _processes(finding: Finding) -> str:
    senders = ", ".join(finding.senders) or "not named"
    return f"readers {', '.join(finding.readers)}; senders {senders}"


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
        breaks = [
            text
            for text, way in zip(
                ("new readers of old messages", "old readers of new messages"), ways
            )
            if way != OK
        ]
        what = f"same fingerprint; {' and '.join(breaks)} may break"
    return f"group {verdict.group}: {what}; roll out: {verdict.rollout}"


def summary(report: Report) -> str:
    """Return the last line of a report: how much was found."""
    counts = report.counts()
    parts = [
        counted(counts[level], level)
        for level in (ERROR, WARNING, NOTE)
        if counts[level] or level == ERROR
    ]
    if counts["waived"]:
        parts.append(f"{counts['waived']} waived")
    return ", ".join(parts)


def heading(comparison: Comparison) -> str:
    """`against main (1a2b3c4d5e6f)`."""
    return f"against {comparison.against} ({comparison.label})"

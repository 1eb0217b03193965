"""Waivers: which findings the schema's authors allow, and which waivers are of no use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from msgen.codegen.schema.errors import Place
from msgen.codegen.schema.rule import ERROR, WARNING
from msgen.codegen.schema.texts import shown

from .changes import Change, ChangeRule
from .outcome import Diff, Finding, Waiver


def apply_waivers(
    diffs: Sequence[Diff], waivers: Sequence[Waiver], today: date
) -> tuple[list[Diff], list[Finding]]:
    """Mark the findings that a waiver allows.

    Returns:
        The diffs, and findings about waivers that expired or that fit nothing.
    """
    valid = [each for each in waivers if each.until >= today.isoformat()]
    used: set[Place] = set()

    def judged(finding: Finding) -> Finding:
        waiver = next((each for each in valid if _fits(each, finding.change)), None)
        if waiver is not None:
            used.add(waiver.place)
        return replace(finding, waiver=waiver)

    result = [
        replace(each, findings=tuple(map(judged, each.findings))) for each in diffs
    ]
    about = [waiver_expired(each) for each in waivers if each not in valid]
    about += [waiver_unused(each) for each in valid if each.place not in used]
    return result, about


def _fits(waiver: Waiver, change: Change) -> bool:
    subjects = (change.subject, change.old_subject)
    return waiver.rule == change.rule.id and waiver.subject in subjects


def waiver_expired(waiver: Waiver) -> Finding:
    return _about(WAIVER_EXPIRED, waiver, f"ended on {waiver.until}")


WAIVER_EXPIRED = ChangeRule(
    "WAIVER_EXPIRED",
    "a waiver's date is past",
    "A waiver says until when a break is known and wanted. After that day the finding counts "
    "again.",
    "remove the waiver, or agree on another day.",
    finder=waiver_expired,
    harmless=ERROR,
    before="waivers:\n  - rule: INT_CHANGED\n    place: backend.UserMsg.uid\n"
    "    reason: All processes restart together.\n    until: 2030-01-31",
)


def waiver_unused(waiver: Waiver) -> Finding:
    return _about(WAIVER_UNUSED, waiver, "fits no finding")


WAIVER_UNUSED = ChangeRule(
    "WAIVER_UNUSED",
    "a waiver fits no finding",
    "What it allowed is not there, or no longer. Left in the file, it would allow the next such "
    "break, which nobody decided on.",
    "remove the waiver.",
    finder=waiver_unused,
    severity=WARNING,
)


def _about(rule: ChangeRule, waiver: Waiver, what: str) -> Finding:
    text = f"the waiver of {waiver.rule} at {shown(waiver.subject)} {what}"
    change = Change(rule, waiver.subject, waiver.place, None, text)
    return Finding(change, rule.harmless)

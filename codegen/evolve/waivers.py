"""Waivers: breaks that the schema's authors decided on, declared in `msgen.yaml` beside the groups.

A waiver names a rule, a place by its dotted name, a reason, and the last day on which it counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from msgen.codegen.evolve.changes.change import (
    NOTHING,
    OK,
    Change,
    Comparison,
    Finding,
    Waiver,
)
from msgen.codegen.evolve.rules.table import RULES, find_rule, unknown_rule
from msgen.codegen.schema.errors import Place, Problems
from msgen.codegen.schema.loader import SETTINGS_FILE, UNREADABLE_FILE
from msgen.codegen.schema.rule import Rule
from msgen.codegen.schema.sections import read_section
from msgen.codegen.schema.texts import shown
from msgen.codegen.schema.yaml import parse_yaml


def load_waivers(folder: Path) -> list[Waiver]:
    """Load the waivers of a schema folder; none where it has no `msgen.yaml`.

    Raises:
        SchemaError: the file is wrong; with every problem found.
    """
    path = folder / SETTINGS_FILE
    if not path.exists():
        return []
    problems = Problems()
    label = path.as_posix()
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        problems.add(
            Place(label),
            UNREADABLE_FILE,
            f"cannot be read: {error}; make it a readable file in UTF-8, or remove it",
        )
        text = ""
    if not problems.found and not text.strip():
        return []
    node = None if problems.found else parse_yaml(text, label, problems)
    problems.raise_if_any()
    assert node is not None
    settings = read_section("settings", SETTINGS_FILE, node.place, node, problems)
    waivers = []
    for section in settings.sections("waivers"):
        rule = section.text("rule")
        if rule and rule not in RULES:
            found = find_rule(rule)
            hint = f"write '{found.id}'" if found else unknown_rule(rule)
            problems.add(
                section.place_of("rule"),
                UNKNOWN_RULE,
                f"'rule' of a waiver is {shown(rule)}; {hint}",
            )
        waivers.append(
            Waiver(
                rule,
                section.text("place"),
                section.text("reason"),
                section.text("until"),
                section.place_of("rule"),
            )
        )
    problems.raise_if_any()
    return waivers


UNKNOWN_RULE = Rule(
    "unknown-rule",
    "a waiver names a rule that does not exist",
    "It would allow nothing, and the break that it was written for would fail the run.",
    "write the id of the finding as `msgen diff` prints it; `msgen rules` lists them all.",
    load_waivers,
)


def apply_waivers(
    comparisons: Sequence[Comparison], waivers: Sequence[Waiver], today: date
) -> tuple[list[Comparison], list[Finding]]:
    """Mark the findings that a waiver allows.

    Returns:
        The comparisons, and findings about waivers that expired or that fit nothing.
    """
    day = today.isoformat()
    valid = [each for each in waivers if each.until >= day]
    used: set[Place] = set()
    result = []
    for comparison in comparisons:
        findings = []
        for finding in comparison.findings:
            waiver = next((each for each in valid if _fits(each, finding)), None)
            if waiver is not None:
                used.add(waiver.place)
                finding = replace(finding, waiver=waiver)
            findings.append(finding)
        result.append(replace(comparison, findings=tuple(findings)))
    about = [
        _about(
            each,
            "WAIVER_EXPIRED",
            f"the waiver of {each.rule} at {shown(each.subject)} ended on {each.until}",
        )
        for each in waivers
        if each not in valid
    ]
    about += [
        _about(
            each,
            "WAIVER_UNUSED",
            f"the waiver of {each.rule} at {shown(each.subject)} fits no finding",
        )
        for each in valid
        if each.place not in used
    ]
    return result, about


def _fits(waiver: Waiver, finding: Finding) -> bool:
    change = finding.change
    return waiver.rule == change.rule and waiver.subject in (
        change.subject,
        change.old_subject,
    )


def _about(waiver: Waiver, rule: str, text: str) -> Finding:
    change = Change(rule, waiver.subject, waiver.place, None, text)
    return Finding(change, RULES[rule].harmless, NOTHING, OK, OK, rollout="any order")

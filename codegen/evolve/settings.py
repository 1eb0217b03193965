"""`msgen.yaml`, beside the groups: the waivers of a schema.

A waiver names a rule, a place by its dotted name, a reason, and the last day on which it counts.
"""

from __future__ import annotations

from pathlib import Path

from msgen.codegen.schema.errors import Place, Problems
from msgen.codegen.schema.loader import SETTINGS_FILE, UNREADABLE_FILE
from msgen.codegen.schema.rule import Rule, find_rule, unknown_rule
from msgen.codegen.schema.sections import Section, read_section
from msgen.codegen.schema.texts import shown
from msgen.codegen.schema.yaml import parse_yaml

from .outcome import Waiver
from .rules import RULES


def load_waivers(folder: Path) -> list[Waiver]:
    """Load the waivers of a schema folder; none where it has no `msgen.yaml`.

    Raises:
        SchemaError: the file is wrong; with every problem found.
    """
    path = folder / SETTINGS_FILE
    label = path.as_posix()
    problems = Problems()
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        problems.add(
            Place(label),
            UNREADABLE_FILE,
            f"cannot be read: {error}; make it a readable file in UTF-8, or remove it",
        )
        problems.raise_if_any()
        raise
    if not text.strip():
        return []
    node = parse_yaml(text, label, problems)
    problems.raise_if_any()
    assert node is not None
    settings = read_section("settings", SETTINGS_FILE, node.place, node, problems)
    sections = settings.sections("waivers")
    for section in sections:
        check_rule(section, problems)
    problems.raise_if_any()
    return [
        Waiver(
            section.text("rule"),
            section.text("place"),
            section.text("reason"),
            section.text("until"),
            section.place_of("rule"),
        )
        for section in sections
    ]


def check_rule(waiver: Section, problems: Problems) -> None:
    """Report a waiver of a rule that is none of a diff."""
    rule = waiver.text("rule")
    if rule and rule not in RULES:
        found = find_rule(rule, RULES)
        hint = f"write '{found.id}'" if found else unknown_rule(rule, RULES)
        problems.add(
            waiver.place_of("rule"),
            UNKNOWN_RULE,
            f"'rule' of a waiver is {shown(rule)}; {hint}",
        )


UNKNOWN_RULE = Rule(
    "unknown-rule",
    "a waiver names a rule that `diff` does not have",
    "The waiver would allow nothing, and the finding that it was written for would fail the run.",
    "write the rule as the finding shows it; `msgen rules` lists them all.",
    finder=check_rule,
)

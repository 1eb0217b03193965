"""The table of findings: every rule whose id a command prints."""

from __future__ import annotations

from textwrap import fill, indent

from msgen.codegen.evolve import RULES as CHANGE_RULES
from msgen.codegen.evolve import UNKNOWN_RULE, ChangeRule
from msgen.codegen.history import LAYOUTS_WRONG
from msgen.codegen.schema.rule import ERROR, Rule
from msgen.codegen.schema.rules import RULES as SCHEMA_RULES

from .report import STALE_MODULE

LISTS: dict[str, tuple[Rule, ...]] = {
    "errors of the files in a schema folder": (
        *(rule for rule in SCHEMA_RULES if rule.severity == ERROR),
        LAYOUTS_WRONG,
        UNKNOWN_RULE,
    ),
    "findings of check": (
        *(rule for rule in SCHEMA_RULES if rule.severity != ERROR),
        STALE_MODULE,
    ),
    "findings of diff, and of check --against": tuple(CHANGE_RULES.values()),
}
"""Where they are told, to the rules in their order."""
RULES: dict[str, Rule] = {rule.id: rule for rules in LISTS.values() for rule in rules}


def severity_of(rule: Rule, where: str = "{}/{}") -> str:
    """Return a rule's severity; ``where`` shows two: where a peer breaks, and where none does."""
    if isinstance(rule, ChangeRule) and rule.harmless != rule.severity:
        return where.format(rule.severity, rule.harmless)
    return rule.severity


def explain(rule: Rule) -> str:
    """Return what `msgen explain` says about a rule."""
    severity = severity_of(rule, "{} where a peer breaks, {} where none does")
    texts = (
        f"{rule.id}: {rule.purpose}",
        f"Severity: {severity}.",
        rule.why,
        f"Instead: {rule.instead}",
    )
    parts = [fill(text, 79, break_on_hyphens=False) for text in texts]
    if isinstance(rule, ChangeRule):
        for title, example in (("Before", rule.before), ("After", rule.after)):
            if example:
                parts.append(f"{title}:\n\n{indent(example, '    ')}")
    return "\n\n".join(parts)

"""The rules of a diff: one row for each kind of change, with its severity and what to do instead.

The comparers find changes and name a rule; whether a change breaks a peer depends on where it
stands and who reads it. So a row has two severities: where a peer breaks, and where none does.
"""

from __future__ import annotations

from textwrap import fill

from msgen.codegen.schema.texts import did_you_mean

from .enums import ENUM_RULES
from .fields import FIELD_RULES
from .messages import MESSAGE_RULES
from .rule import Rule
from .types import TYPE_RULES

RULES: dict[str, Rule] = {
    rule.id: rule for rule in (*MESSAGE_RULES, *FIELD_RULES, *TYPE_RULES, *ENUM_RULES)
}


def find_rule(name: str) -> Rule | None:
    """Return a rule by its id, in any case and with dashes or underscores."""
    return RULES.get(name.upper().replace("-", "_"))


def unknown_rule(name: str) -> str:
    """Say that there is no such rule, and which one may be meant."""
    hint = did_you_mean(name.upper().replace("-", "_"), RULES)
    return f"there is no rule '{name}'{hint or '; msgen rules lists them'}"


def explain(rule: Rule) -> str:
    """Return what `msgen explain` says about a rule."""
    severity = rule.severity
    if rule.harmless != rule.severity:
        severity += f" where a peer breaks, {rule.harmless} where none does"
    texts = [
        f"{rule.id}: {rule.purpose}",
        f"Severity: {severity}.",
        rule.why,
        f"Instead: {rule.instead}",
    ]
    parts = [fill(text, 79, break_on_hyphens=False) for text in texts]
    for title, example in (("Before", rule.before), ("After", rule.after)):
        if example:
            lines = "\n".join(f"    {line}" for line in example.splitlines())
            parts.append(f"{title}:\n\n{lines}")
    return "\n\n".join(parts)

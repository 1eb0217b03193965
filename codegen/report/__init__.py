"""Findings of a whole run as text, JSON, GitHub annotations, Markdown and SARIF.

A `Report` holds what a run found: diffs from `evolve`, lint from `schema`, modules that are
out of date. Each format is a function from a report to a string. `rules` is
the one table of findings: it collects the rows of all packages below, by id. May import `evolve`,
`history` and `schema`; prints nothing.
"""

from .formats import FORMATS, text_report
from .report import Report
from .rules import LISTS, RULES, explain, severity_of

__all__ = [
    "FORMATS",
    "LISTS",
    "RULES",
    "Report",
    "explain",
    "severity_of",
    "text_report",
]

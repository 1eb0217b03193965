"""The formats of a report, by the name that `--format` gives them."""

from __future__ import annotations

from collections.abc import Callable

from .as_github import github_report
from .as_json import json_report
from .as_markdown import markdown_report
from .as_sarif import sarif_report
from .as_text import text_report
from .report import Report

FORMATS: dict[str, Callable[[Report], str]] = {
    "text": text_report,
    "json": json_report,
    "github": github_report,
    "sarif": sarif_report,
    "markdown": markdown_report,
}

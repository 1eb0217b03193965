"""Reports as text, JSON, GitHub annotations and Markdown: functions from a report to a string."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgen.codegen.evolve.changes.change import (
    ERROR,
    NOTE,
    OK,
    WARNING,
    Comparison,
    Finding,
)
from msgen.codegen.schema.errors import Place

from .paths import path_in, repository_root
from .report import Report, Result, heading, summary, verdict_line
from .sarif import sarif_report

JSON_VERSION = 1
"""Raised when a key of the JSON report changes its meaning."""


def text_report(report: Report, colour: Callable[[str], str] = str) -> str:
    """Return a report for people; ``colour`` takes a level and returns it with its colour."""
    return "".join(f"{line}\n" for line in _text_lines(report, colour))


def _text_lines(report: Report, colour: Callable[[str], str]) -> Iterator[str]:
    for problem in report.lint:
        yield _line(_of_problem(problem), colour)
    for kind, path in report.stale:
        yield f"{colour(kind)}: {path}"
    if report.stale:
        yield f"run 'msgen build {report.schema_dir.as_posix()}' to bring them up to date"
    for text in report.skipped:
        yield f"not compared: {text}"
    for comparison in report.comparisons:
        if not comparison.findings:
            yield f"{heading(comparison)}: no findings"
            continue
        yield heading(comparison)
        for finding in comparison.findings:
            result = report.result(finding)
            yield _line(result, colour)
            yield from (f"    {line}" for line in result.details)
        for verdict in comparison.verdicts:
            if (verdict.new_reads_old, verdict.old_reads_new) != (OK, OK):
                yield verdict_line(verdict)
        yield f"roll out: {comparison.rollout}"
    for finding in report.about_waivers:
        yield _line(report.result(finding), colour)


def _of_problem(problem: Any) -> Result:
    return Result(problem.severity, problem.rule.id, problem.place, problem.message)


def _line(result: Result, colour: Callable[[str], str]) -> str:
    level = "waived" if result.waived is not None else result.level
    return f"{result.place}: {colour(level)}: {result.text} [{result.rule}]"


def json_report(report: Report) -> str:
    """Return a report for programs."""
    counts = report.counts()
    data = {
        "version": JSON_VERSION,
        "comparisons": [_comparison(report, each) for each in report.comparisons],
        "waivers": [_finding(report, each) for each in report.about_waivers],
        "skipped": list(report.skipped),
        "lint": [
            {
                "rule": each.rule.id,
                "severity": each.severity,
                "place": _place(each.place),
                "text": each.message,
            }
            for each in report.lint
        ],
        "stale": [{"kind": kind, "path": path} for kind, path in report.stale],
        "summary": {
            f"{level}s" if level != "waived" else level: counts[level]
            for level in (ERROR, WARNING, NOTE, "waived")
        },
    }
    return json.dumps(data, indent=2) + "\n"


def _comparison(report: Report, comparison: Comparison) -> dict[str, Any]:
    return {
        "against": comparison.against,
        "label": comparison.label,
        "rollout": comparison.rollout,
        "groups": [
            {
                "group": each.group,
                "receiver": each.receiver,
                "same_fingerprint": each.same_fingerprint,
                "new_reads_old": each.new_reads_old,
                "old_reads_new": each.old_reads_new,
                "rollout": each.rollout,
            }
            for each in comparison.verdicts
        ],
        "findings": [_finding(report, each) for each in comparison.findings],
    }


def _finding(report: Report, finding: Finding) -> dict[str, Any]:
    change = finding.change
    return {
        "rule": change.rule,
        "severity": finding.severity,
        "subject": change.subject,
        "place": _place(report.located(change.place)),
        "old_place": None if change.old_place is None else _place(change.old_place),
        "text": change.text,
        "old": change.old,
        "new": change.new,
        "breaks": finding.breaks,
        "new_reads_old": finding.new_reads_old,
        "old_reads_new": finding.old_reads_new,
        "groups": list(finding.groups),
        "messages": list(finding.messages or finding.old_messages),
        "readers": list(finding.readers),
        "senders": list(finding.senders),
        "rollout": finding.rollout,
        "waived": None if finding.waiver is None else finding.waiver.reason,
    }


def _place(place: Place) -> dict[str, Any]:
    return {"path": place.path, "line": place.line, "column": place.column}


def github_report(report: Report) -> str:
    """Return the lines that a GitHub workflow turns into annotations; paths are the repository's."""
    commands = {ERROR: "error", WARNING: "warning", NOTE: "notice"}
    root = repository_root(report.schema_dir)
    lines = []
    for result in report.results():
        level = "notice" if result.waived is not None else commands[result.level]
        path = path_in(root, result.place.path)
        properties = {
            "file": path,
            "line": str(result.place.line),
            "col": str(result.place.column),
            "title": result.rule,
        }
        shown = ",".join(
            f"{key}={_escaped(value, property_=True)}"
            for key, value in properties.items()
        )
        message = _escaped("\n".join((result.text, *result.details)))
        lines.append(f"::{level} {shown}::{message}\n")
    lines += [
        f"::notice title=not compared::{_escaped(each)}\n" for each in report.skipped
    ]
    return "".join([*lines, f"{summary(report)}\n"])


def _escaped(text: str, property_: bool = False) -> str:
    """Escape as the runner asks: percent and line ends, in properties colons and commas too."""
    pairs = [("%", "%25"), ("\r", "%0D"), ("\n", "%0A")]
    if property_:
        pairs += [(":", "%3A"), (",", "%2C")]
    for char, escape in pairs:
        text = text.replace(char, escape)
    return text


def markdown_report(report: Report) -> str:
    """Return a report for a comment or a job's summary."""
    return "".join(f"{line}\n" for line in _markdown_lines(report))


def _markdown_lines(report: Report) -> Iterator[str]:
    yield f"**msgen: {summary(report)}**"
    root = repository_root(report.schema_dir)
    for comparison in report.comparisons:
        title = _cell(heading(comparison))
        yield from ("", f"### {title[:1].upper()}{title[1:]}", "")
        if comparison.verdicts:
            yield "| group | new readers of old messages | old readers of new messages | roll out |"
            yield "|---|---|---|---|"
            for each in comparison.verdicts:
                cells = (
                    each.group,
                    each.new_reads_old,
                    each.old_reads_new,
                    each.rollout,
                )
                yield f"| {' | '.join(map(_cell, cells))} |"
            yield ""
        yield from _table(map(report.result, comparison.findings), root)
    others = Report(
        report.schema_dir,
        about_waivers=report.about_waivers,
        lint=report.lint,
        stale=report.stale,
    )
    if any(others.results()):
        yield from ("", "### The schema of today", "")
        yield from _table(others.results(), root)
    for text in report.skipped:
        yield from ("", f"Not compared: {_cell(text)}")


def _table(results: Iterator[Result], root: Path) -> Iterator[str]:
    rows = list(results)
    if not rows:
        yield "No findings."
        return
    yield "| | place | rule | what |"
    yield "|---|---|---|---|"
    for each in rows:
        level = "waived" if each.waived is not None else each.level
        place = f"`{path_in(root, each.place.path)}:{each.place.line}`"
        what = "<br>".join(_cell(line) for line in (each.text, *each.details))
        yield f"| {level} | {place} | {each.rule} | {what} |"


def _cell(text: str) -> str:
    """Escape what would end a cell or begin an element."""
    for char, escape in (
        ("&", "&amp;"),
        ("<", "&lt;"),
        ("|", "\\|"),
        ("*", "\\*"),
        ("_", "\\_"),
    ):
        text = text.replace(char, escape)
    return " ".join(text.split())


FORMATS: dict[str, Callable[[Report], str]] = {
    "text": text_report,
    "json": json_report,
    "github": github_report,
    "sarif": sarif_report,
    "markdown": markdown_report,
}

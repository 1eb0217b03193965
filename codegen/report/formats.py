"""The formats of a report, by the name that `--format` gives them; those for people are here.

Each is a function from a report to a string.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from msgen.codegen.evolve import OK
from msgen.codegen.schema.rule import NOTE

from .as_json import json_report
from .as_sarif import sarif_report
from .report import Report, Result
from .wording import heading, verdict_line


def text_report(report: Report, colour: Callable[[str], str] = str) -> str:
    """Return a report for people; ``colour`` takes a level and returns it with its colour."""
    return _joined(_text(report, colour))


def _text(report: Report, colour: Callable[[str], str]) -> Iterator[str]:
    def line(result: Result) -> str:
        level = colour(result.shown_level)
        return f"{result.place}: {level}: {result.text} [{result.rule.id}]"

    yield from map(line, report.lint_results())
    for kind, path in report.stale:
        yield f"{colour(kind)}: {path}"
    if report.stale:
        yield f"run 'msgen build {report.schema_dir.as_posix()}' to bring them up to date"
    for text in report.skipped:
        yield f"not compared: {text}"
    for diff in report.diffs:
        if not diff.findings:
            yield f"{heading(diff)}: no findings"
            continue
        yield heading(diff)
        for result in map(report.result, diff.findings):
            yield line(result)
            yield from (f"    {each}" for each in result.details)
        for verdict in diff.verdicts:
            if (verdict.new_reads_old, verdict.old_reads_new) != (OK, OK):
                yield verdict_line(verdict)
        yield f"roll out: {diff.rollout}"
    yield from map(line, map(report.result, report.about_waivers))


def github_report(report: Report) -> str:
    """Return the lines that a GitHub workflow turns into annotations; paths are the repository's."""
    lines = [_annotation(report, each) for each in report.results()]
    lines += (
        f"::notice title=not compared::{escaped(each)}" for each in report.skipped
    )
    return _joined([*lines, report.summary()])


def _annotation(report: Report, result: Result) -> str:
    notice = result.waived is not None or result.level == NOTE
    place = result.place
    file = escaped(report.in_repository(place), property_=True)
    at = f"file={file},line={place.line},col={place.column},title={result.rule.id}"
    level = "notice" if notice else result.level
    return f"::{level} {at}::{escaped(result.message)}"


def escaped(text: str, property_: bool = False) -> str:
    """Escape as the runner asks: percent and line ends, in properties colons and commas too."""
    pairs = [("%", "%25"), ("\r", "%0D"), ("\n", "%0A")]
    if property_:
        pairs += [(":", "%3A"), (",", "%2C")]
    for char, escape in pairs:
        text = text.replace(char, escape)
    return text


def markdown_report(report: Report) -> str:
    """Return a report for a comment or a job's summary."""
    return _joined(_markdown(report))


def _markdown(report: Report) -> Iterator[str]:
    yield f"**msgen: {report.summary()}**"
    for diff in report.diffs:
        title = _cell(heading(diff))
        yield from ("", f"### {title[:1].upper()}{title[1:]}", "")
        if diff.verdicts:
            yield "| group | new readers of old messages | old readers of new messages | roll out |"
            yield "|---|---|---|---|"
            for each in diff.verdicts:
                ways = (each.new_reads_old, each.old_reads_new)
                yield f"| {' | '.join(map(_cell, (each.group, *ways, each.rollout)))} |"
            yield ""
        yield from _table(report, map(report.result, diff.findings))
    others = list(replace(report, diffs=()).results())
    if others:
        yield from ("", "### The schema of today", "")
        yield from _table(report, others)
    for text in report.skipped:
        yield from ("", f"Not compared: {_cell(text)}")


def _table(report: Report, results: Iterable[Result]) -> Iterator[str]:
    rows = list(results)
    if not rows:
        yield "No findings."
        return
    yield "| | place | rule | what |"
    yield "|---|---|---|---|"
    for each in rows:
        place = f"`{report.in_repository(each.place)}:{each.place.line}`"
        what = "<br>".join(_cell(line) for line in (each.text, *each.details))
        yield f"| {each.shown_level} | {place} | {each.rule.id} | {what} |"


_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", "|": "\\|", "*": "\\*", "_": "\\_"}
)


def _cell(text: str) -> str:
    """Escape what would end a cell or begin an element."""
    return " ".join(text.translate(_ESCAPES).split())


def _joined(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


FORMATS: dict[str, Callable[[Report], str]] = {
    "text": text_report,
    "json": json_report,
    "github": github_report,
    "sarif": sarif_report,
    "markdown": markdown_report,
}

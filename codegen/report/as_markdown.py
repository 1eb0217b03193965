"""A report as Markdown, for a comment or a job's summary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from .report import Report, Result
from .wording import heading


def markdown_report(report: Report) -> str:
    return "".join(f"{line}\n" for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    yield f"**msgen: {report.summary()}**"
    for diff in report.diffs:
        title = _cell(heading(diff))
        yield from ("", f"### {title[:1].upper()}{title[1:]}", "")
        if diff.verdicts:
            yield "| group | new readers of old messages | old readers of new messages | roll out |"
            yield "|---|---|---|---|"
            for each in diff.verdicts:
                cells = (
                    each.group,
                    each.new_reads_old,
                    each.old_reads_new,
                    each.rollout,
                )
                yield f"| {' | '.join(map(_cell, cells))} |"
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

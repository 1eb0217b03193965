"""A report as text, for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgen.codegen.evolve import OK

from .report import Report, Result
from .wording import heading, verdict_line


def text_report(report: Report, colour: Callable[[str], str] = str) -> str:
    """Return a report for people; ``colour`` takes a level and returns it with its colour."""
    return "".join(f"{line}\n" for line in _lines(report, colour))


def _lines(report: Report, colour: Callable[[str], str]) -> Iterator[str]:
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

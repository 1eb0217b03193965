"""A report as the lines that a GitHub workflow turns into annotations; paths are the repository's."""

from __future__ import annotations

from msgen.codegen.schema.rule import NOTE

from .report import Report, Result


def github_report(report: Report) -> str:
    lines = [_annotation(report, each) for each in report.results()]
    lines += [
        f"::notice title=not compared::{escaped(each)}" for each in report.skipped
    ]
    return "".join(f"{line}\n" for line in (*lines, report.summary()))


def _annotation(report: Report, result: Result) -> str:
    notice = result.waived is not None or result.level == NOTE
    place = result.place
    properties = (
        f"file={escaped(report.in_repository(place), property_=True)}",
        f"line={place.line}",
        f"col={place.column}",
        f"title={result.rule.id}",
    )
    message = escaped("\n".join((result.text, *result.details)))
    level = "notice" if notice else result.level
    return f"::{level} {','.join(properties)}::{message}"


def escaped(text: str, property_: bool = False) -> str:
    """Escape as the runner asks: percent and line ends, in properties colons and commas too."""
    pairs = [("%", "%25"), ("\r", "%0D"), ("\n", "%0A")]
    if property_:
        pairs += [(":", "%3A"), (",", "%2C")]
    for char, escape in pairs:
        text = text.replace(char, escape)
    return text

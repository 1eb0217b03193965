"""Commands that judge a schema: `check`, `diff`, and the rules that they go by."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from .console import (
    FINDINGS,
    coloured,
    default_output,
    out_option,
    schema_argument,
    stop,
    with_schema_errors,
)

if TYPE_CHECKING:
    from msgen.codegen.report import Report
    from msgen.codegen.schema.loader import Known
    from msgen.codegen.schema.model import Schema

_FORMATS = ("text", "json", "github", "sarif", "markdown")


def _diff_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of commands that compare with older versions."""
    for option in (
        click.option(
            "--allow-missing",
            is_flag=True,
            help="A version without the schema folder is compatible.",
        ),
        click.option("--strict", is_flag=True, help="Let warnings fail too."),
        click.option(
            "--format",
            "format_",
            type=click.Choice(_FORMATS),
            default="text",
            show_default=True,
            help="How to print the findings.",
        ),
        click.option(
            "--transitive",
            metavar="PATTERN",
            help="Compare with every tag that matches, such as 'v1.*'.",
        ),
    ):
        command = option(command)
    return command


@click.command()
@schema_argument
@out_option
@click.option(
    "--against",
    metavar="WHAT",
    help="Compare with a git branch, tag or commit, a folder, or 'merge-base'.",
)
@_diff_options
@with_schema_errors
def check(
    schema_dir: Path,
    out: Path | None,
    against: str | None,
    transitive: str | None,
    allow_missing: bool,
    format_: str,
    strict: bool,
) -> None:
    """Check SCHEMA_DIR for CI: lint, modules that are out of date, and what breaks a peer.

    Older versions are compared with when --against or --transitive says which; `merge-base` is the
    commit in which this branch left the default branch. All findings make one report and one exit
    code: 0 for none that counts, 1 for some, 2 where something could not be read.
    """
    from msgen.codegen.emit import generate
    from msgen.codegen.emit.output import find_changes
    from msgen.codegen.history import load_layouts
    from msgen.codegen.report import Report
    from msgen.codegen.schema import lint_schema
    from msgen.codegen.schema.loader import load_schema
    from msgen.codegen.schema.texts import counted

    known: Known = {}
    schema = load_schema(schema_dir, known)
    files = generate(schema, load_layouts(schema_dir))
    stale = find_changes(files, out or default_output(schema_dir))
    report = Report(
        schema_dir,
        lint=tuple(lint_schema(schema)),
        stale=tuple((each.kind, each.path.as_posix()) for each in stale),
    )
    report = _with_diffs(report, schema, against, transitive, allow_missing, known)
    parts = [
        counted(len(report.lint), "lint finding"),
        f"{counted(len(report.stale), 'file')} out of date",
    ]
    head = f"{counted(len(schema.groups), 'group')}: {', '.join(parts)}"
    _end(report, format_, strict, head)


@click.command()
@schema_argument
@click.option(
    "--against",
    metavar="WHAT",
    help="A git branch, tag or commit, or a folder.  [default: where this branch began]",
)
@_diff_options
@with_schema_errors
def diff(
    schema_dir: Path,
    against: str | None,
    transitive: str | None,
    allow_missing: bool,
    format_: str,
    strict: bool,
) -> None:
    """Compare SCHEMA_DIR with an older version, and say what breaks for whom.

    Without --against it is compared with the merge base: the commit in which this branch left the
    default branch. The old files are read out of git; the work tree is not touched. A name that is
    both a revision and a folder is taken for the revision; write ./NAME for the folder.

    Exit codes: 0 compatible, 1 findings that break a peer, 2 could not be compared.
    """
    from msgen.codegen.history import MERGE_BASE
    from msgen.codegen.report import Report
    from msgen.codegen.schema.loader import load_schema

    if against is None and transitive is None:
        against = MERGE_BASE
    known: Known = {}
    schema = load_schema(schema_dir, known)
    report = Report(schema_dir)
    report = _with_diffs(report, schema, against, transitive, allow_missing, known)
    _end(report, format_, strict)


def _with_diffs(
    report: Report,
    schema: Schema,
    against: str | None,
    transitive: str | None,
    allow_missing: bool,
    known: Known,
) -> Report:
    """Add what a diff with the versions that the options name finds, as far as it is not waived."""
    if against is None and transitive is None:
        return report
    from datetime import date

    from msgen.codegen import evolve
    from msgen.codegen.history import older_versions

    waivers = evolve.load_waivers(report.schema_dir)
    versions, skipped = older_versions(
        report.schema_dir, against, transitive, allow_missing, known
    )
    found = [
        evolve.diff(each.schema, schema, each.against, each.label) for each in versions
    ]
    # Where nothing was compared, no waiver could be of use.
    waivers = waivers if found else []
    judged, about = evolve.apply_waivers(found, waivers, date.today())
    return replace(
        report, diffs=tuple(judged), about_waivers=tuple(about), skipped=tuple(skipped)
    )


def _end(report: Report, format_: str, strict: bool, head: str = "") -> NoReturn:
    """Print a report and end with its exit code.

    Args:
        head: begins the last line of a text, which stands alone on the standard output then.
    """
    from msgen.codegen.report import FORMATS, text_report

    if format_ == "text":
        click.echo(text_report(report, coloured), nl=False, err=bool(head))
        compared = report.diffs or report.skipped
        parts = [head, report.summary() if compared else ""]
        click.echo(": ".join(filter(None, parts)))
    else:
        click.echo(FORMATS[format_](report), nl=False)
    sys.exit(FINDINGS if report.fails(strict) else 0)


@click.command()
def rules() -> None:
    """List the rules of all findings: what each finds, and how severe it is."""
    from msgen.codegen.report import LISTS, RULES, severity_of

    width = max(map(len, RULES))
    for title, listed in LISTS.items():
        click.echo(f"{title}:")
        for rule in listed:
            click.echo(f"{rule.id:{width}}  {severity_of(rule):13}  {rule.purpose}")
        click.echo()
    click.echo("error/warning: where a peer breaks / where none does")


@click.command()
@click.argument("rule")
def explain(rule: str) -> None:
    """Say why RULE is a rule, and what to do instead, with an example."""
    from msgen.codegen import report
    from msgen.codegen.schema.rule import find_rule, unknown_rule

    found = find_rule(rule, report.RULES)
    if found is None:
        stop(unknown_rule(rule, report.RULES))
    click.echo(report.explain(found))

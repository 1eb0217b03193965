"""Commands that judge a schema: `check`, `diff`, and the rules that they go by."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    from msgen.codegen.history.against import Previous
    from msgen.codegen.report.report import Report
    from msgen.codegen.schema.loader import Known
    from msgen.codegen.schema.model import Schema

_FORMATS = ("text", "json", "github", "sarif", "markdown")


def _comparing(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of commands that compare with older versions."""
    options = [
        click.option(
            "--transitive",
            metavar="PATTERN",
            help="Compare with every tag that matches, such as 'v1.*'.",
        ),
        click.option(
            "--format",
            "format_",
            type=click.Choice(_FORMATS),
            default="text",
            show_default=True,
            help="How to print the findings.",
        ),
        click.option("--strict", is_flag=True, help="Let warnings fail too."),
        click.option(
            "--allow-missing",
            is_flag=True,
            help="A version without the schema folder is compatible.",
        ),
    ]
    for option in reversed(options):
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
@_comparing
@with_schema_errors
def check(
    schema_dir: Path,
    out: Path | None,
    against: str | None,
    transitive: str | None,
    format_: str,
    strict: bool,
    allow_missing: bool,
) -> None:
    """Check SCHEMA_DIR for CI: lint, modules that are out of date, and what breaks a peer.

    Older versions are compared with when --against or --transitive says which; `merge-base` is the
    commit in which this branch left the default branch. All findings make one report and one exit
    code: 0 for none that counts, 1 for some, 2 where something could not be read.
    """
    from msgen.codegen.emit import generate
    from msgen.codegen.emit.output import find_changes
    from msgen.codegen.history.layouts import load_layouts
    from msgen.codegen.schema.lint import lint
    from msgen.codegen.schema.loader import load_schema
    from msgen.codegen.schema.texts import counted

    known: Known = {}
    schema = load_schema(schema_dir, known)
    files = generate(schema, load_layouts(schema_dir))
    changes = find_changes(files, out or default_output(schema_dir))
    report = _compared(
        schema_dir,
        schema,
        against,
        transitive,
        allow_missing,
        known,
        lint=tuple(lint(schema)),
        stale=tuple((each.kind, each.path.as_posix()) for each in changes),
    )
    parts = [
        counted(len(report.lint), "lint finding"),
        f"{counted(len(report.stale), 'file')} out of date",
    ]
    head = f"{counted(len(schema.groups), 'group')}: {', '.join(parts)}"
    _print(report, format_, head, problems_apart=True)
    sys.exit(FINDINGS if report.fails(strict) else 0)


@click.command()
@schema_argument
@click.option(
    "--against",
    metavar="WHAT",
    help="A git branch, tag or commit, or a folder.  [default: where this branch began]",
)
@_comparing
@with_schema_errors
def diff(
    schema_dir: Path,
    against: str | None,
    transitive: str | None,
    format_: str,
    strict: bool,
    allow_missing: bool,
) -> None:
    """Compare SCHEMA_DIR with an older version, and say what breaks for whom.

    Without --against it is compared with the merge base: the commit in which this branch left the
    default branch. The old files are read out of git; the work tree is not touched. A name that is
    both a revision and a folder is taken for the revision; write ./NAME for the folder.

    Exit codes: 0 compatible, 1 findings that break a peer, 2 could not be compared.
    """
    from msgen.codegen.history.against import MERGE_BASE
    from msgen.codegen.schema.loader import load_schema

    if against is None and transitive is None:
        against = MERGE_BASE
    known: Known = {}
    schema = load_schema(schema_dir, known)
    report = _compared(schema_dir, schema, against, transitive, allow_missing, known)
    _print(report, format_, "", problems_apart=False)
    sys.exit(FINDINGS if report.fails(strict) else 0)


def _compared(
    schema_dir: Path,
    schema: Schema,
    against: str | None,
    transitive: str | None,
    allow_missing: bool,
    known: Known,
    **found: Any,
) -> Report:
    """Compare a schema with what the options name, and apply its waivers."""
    from msgen.codegen.report.report import Report

    if against is None and transitive is None:
        return Report(schema_dir, **found)
    from datetime import date

    from msgen.codegen.evolve.findings import diff as compare
    from msgen.codegen.evolve.waivers import apply_waivers, load_waivers
    from msgen.codegen.history.against import (
        AgainstError,
        previous_version,
        tagged_versions,
    )

    waivers = load_waivers(schema_dir)
    try:
        versions: list[Previous] = []
        without: list[str] = []
        if against is not None:
            versions.append(previous_version(schema_dir, against, allow_missing, known))
        if transitive is not None:
            tagged, without = tagged_versions(schema_dir, transitive, known)
            versions += tagged
    except AgainstError as error:
        stop(str(error))
    skipped = [f"tag {tag} has no schema folder" for tag in without]
    comparisons = []
    for version in versions:
        if version.schema is None:
            skipped.append(
                f"{version.against} ({version.label}) has no schema folder; a new schema breaks "
                "nobody"
            )
        else:
            comparisons.append(
                compare(version.schema, schema, version.against, version.label)
            )
    # Where nothing was compared, no waiver could be of use.
    waivers = waivers if comparisons else []
    judged, about = apply_waivers(comparisons, waivers, date.today())
    return Report(schema_dir, tuple(judged), tuple(about), tuple(skipped), **found)


def _print(report: Report, format_: str, head: str, problems_apart: bool) -> None:
    """Print a report; ``problems_apart`` puts the findings of a text on the error stream."""
    from msgen.codegen.report.formats import FORMATS, text_report
    from msgen.codegen.report.report import summary

    if format_ != "text":
        click.echo(FORMATS[format_](report), nl=False)
        return
    click.echo(text_report(report, coloured), nl=False, err=problems_apart)
    compared = summary(report) if report.comparisons or report.skipped else ""
    click.echo(": ".join(part for part in (head, compared) if part))


@click.command()
def rules() -> None:
    """List the rules of `diff`: what each finds, and how severe it is."""
    from msgen.codegen.evolve.rules.table import RULES

    width = max(map(len, RULES))
    for rule in RULES.values():
        severity = rule.severity
        if rule.harmless != severity:
            severity += f"/{rule.harmless}"
        click.echo(f"{rule.id:{width}}  {severity:13}  {rule.purpose}")
    click.echo("\nerror/warning: where a peer breaks / where none does")


@click.command()
@click.argument("rule")
def explain(rule: str) -> None:
    """Say why RULE is a rule, and what to do instead, with an example."""
    from msgen.codegen.evolve.rules.table import explain as text_of
    from msgen.codegen.evolve.rules.table import find_rule, unknown_rule

    found = find_rule(rule)
    if found is None:
        stop(unknown_rule(rule))
    click.echo(text_of(found))

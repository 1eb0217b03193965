"""Commands that judge a schema: `check`, `diff`, and the rules that they go by."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from . import console
from .console import out_option, schema_argument, with_schema_errors

if TYPE_CHECKING:
    from msgen.codegen.report import Report
    from msgen.codegen.schema.loader import Known
    from msgen.codegen.schema.model import Schema

_FORMATS = ("text", "json", "github", "sarif", "markdown")
_OPTIONS = (
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
)


def _diff_options(against: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of `_finish`; ``against`` is the help of `--against`."""

    def add(command: Callable[..., None]) -> Callable[..., None]:
        for option in _OPTIONS:
            command = option(command)
        return click.option("--against", metavar="WHAT", help=against)(command)

    return add


@click.command()
@schema_argument
@out_option
@_diff_options("Compare with a git branch, tag or commit, a folder, or 'merge-base'.")
@with_schema_errors
def check(schema_dir: Path, out: Path | None, **options: Any) -> None:
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
    stale = find_changes(files, out or console.default_output(schema_dir))
    report = Report(
        schema_dir,
        lint=tuple(lint_schema(schema)),
        stale=tuple((each.kind, each.path.as_posix()) for each in stale),
    )
    head = (
        f"{counted(len(schema.groups), 'group')}: "
        f"{counted(len(report.lint), 'lint finding')}, "
        f"{counted(len(report.stale), 'file')} out of date"
    )
    _finish(report, schema, known, head, **options)


@click.command()
@schema_argument
@_diff_options(
    "A git branch, tag or commit, or a folder.  [default: where this branch began]"
)
@with_schema_errors
def diff(schema_dir: Path, **options: Any) -> None:
    """Compare SCHEMA_DIR with an older version, and say what breaks for whom.

    Without --against it is compared with the merge base: the commit in which this branch left the
    default branch. The old files are read out of git; the work tree is not touched. A name that is
    both a revision and a folder is taken for the revision; write ./NAME for the folder.

    Exit codes: 0 compatible, 1 findings that break a peer, 2 could not be compared.
    """
    from msgen.codegen.history import MERGE_BASE
    from msgen.codegen.report import Report
    from msgen.codegen.schema.loader import load_schema

    if options["against"] is None and options["transitive"] is None:
        options["against"] = MERGE_BASE
    known: Known = {}
    schema = load_schema(schema_dir, known)
    _finish(Report(schema_dir), schema, known, "", **options)


def _finish(
    report: Report,
    schema: Schema,
    known: Known,
    head: str,
    *,
    against: str | None,
    transitive: str | None,
    allow_missing: bool,
    format_: str,
    strict: bool,
) -> NoReturn:
    """Compare with the versions that the options name, print the report, and end with its exit code.

    Args:
        head: begins the last line of a text, which stands alone on the standard output then.
    """
    from msgen.codegen import evolve
    from msgen.codegen.history import older_versions
    from msgen.codegen.report import FORMATS, text_report

    if against is not None or transitive is not None:
        waivers = evolve.load_waivers(report.schema_dir)
        versions, skipped = older_versions(
            report.schema_dir, against, transitive, allow_missing, known
        )
        found = [
            evolve.diff(each.schema, schema, each.against, each.label)
            for each in versions
        ]
        # Where nothing was compared, no waiver could be of use.
        diffs, about = evolve.apply_waivers(
            found, waivers if found else [], date.today()
        )
        report = replace(
            report,
            diffs=tuple(diffs),
            about_waivers=tuple(about),
            skipped=tuple(skipped),
        )
    if format_ == "text":
        click.echo(text_report(report, console.coloured), nl=False, err=bool(head))
        compared = report.diffs or report.skipped
        parts = [head, report.summary() if compared else ""]
        click.echo(": ".join(filter(None, parts)))
    else:
        click.echo(FORMATS[format_](report), nl=False)
    sys.exit(console.FINDINGS if report.fails(strict) else 0)


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
        console.stop(unknown_rule(rule, report.RULES))
    click.echo(report.explain(found))

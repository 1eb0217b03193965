"""The command line. It alone reads arguments, writes files and decides exit codes.

Exit codes, everywhere: 0 fine, 1 findings, 2 the command or the schema is wrong.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

if TYPE_CHECKING:
    from .errors import Problem
    from .model import Schema
    from .output import Change

FINDINGS = 1
WRONG = 2

_COLOURS = {"error": "red", "warning": "yellow", "changed": "yellow", "missing": "red"}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="msgen", prog_name="msgen")
def main() -> None:
    """Typed messages for inference engines: YAML schemas in, Python codecs out."""


def _with_schema_errors(command: Callable[..., None]) -> Callable[..., None]:
    """End a command with exit code 2 and all problems where the schema or output is wrong."""

    @wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        from .errors import SchemaError
        from .output import OutputError
        from .texts import counted

        # A build makes many objects and drops few: looking for garbage takes a fifth of its time.
        collects = gc.isenabled()
        gc.disable()
        try:
            command(*args, **kwargs)
        except SchemaError as error:
            _print_problems(error.problems)
            errors = counted(len(error.problems), "error")
            click.echo(f"{errors}, nothing written", err=True)
            sys.exit(WRONG)
        except OutputError as error:
            _stop(str(error))
        finally:
            if collects:
                gc.enable()

    return wrapped


_schema_argument = click.argument(
    "schema_dir", type=click.Path(path_type=Path, file_okay=False, exists=True)
)
_out_option = click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the generated modules.  [default: generated/ beside SCHEMA_DIR]",
)


@main.command()
@_schema_argument
@_out_option
@click.option(
    "--check", is_flag=True, help="Write nothing; list what is not up to date."
)
@click.option("--diff", is_flag=True, help="Write nothing; print what would change.")
@_with_schema_errors
def build(schema_dir: Path, out: Path | None, check: bool, diff: bool) -> None:
    """Generate the modules of SCHEMA_DIR.

    Only files whose content changes are written, all of them or none. Files of groups that are
    gone are removed; files that msgen did not generate are never touched. With --check or --diff,
    the exit code is 1 where something would change.
    """
    from .generate import generate
    from .output import apply, compare
    from .schema_loader import load_schema

    schema = load_schema(schema_dir)
    files = generate(schema)
    folder = out or _default_output(schema_dir)
    changes = compare(files, folder)
    if diff:
        for change in changes:
            click.echo("".join(change.diff()), nl=False)
    if check:
        _print_changes(changes)
    if check or diff:
        click.echo(_summary(schema, files, changes, "to write", "to remove"))
        sys.exit(FINDINGS if changes else 0)
    apply(changes, folder)
    click.echo(_summary(schema, files, changes, "written", "removed"))


@main.command()
@_schema_argument
@_out_option
@_with_schema_errors
def check(schema_dir: Path, out: Path | None) -> None:
    """Check SCHEMA_DIR for CI: lint, and whether the generated modules are up to date."""
    from .generate import generate
    from .lint import lint
    from .output import compare
    from .schema_loader import load_schema
    from .texts import counted

    schema = load_schema(schema_dir)
    files = generate(schema)
    findings = lint(schema)
    changes = compare(files, out or _default_output(schema_dir))
    _print_problems(findings)
    _print_changes(changes)
    if changes:
        click.echo(
            f"run 'msgen build {schema_dir.as_posix()}' to bring them up to date",
            err=True,
        )
    click.echo(
        f"{counted(len(schema.groups), 'group')}: {counted(len(findings), 'lint finding')}, "
        f"{counted(len(changes), 'file')} out of date"
    )
    sys.exit(FINDINGS if findings or changes else 0)


@main.command("json-schema")
def json_schema() -> None:
    """Print the JSON Schema of the schema language, for completion in editors."""
    from .language import json_schema as describe

    click.echo(json.dumps(describe(), indent=2))


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=".")
def init(folder: Path) -> None:
    """Make a first schema in FOLDER, which builds at once."""
    from .starter import STARTER_FILES

    taken = [name for name in STARTER_FILES if (folder / name).exists()]
    if taken:
        _stop(f"{(folder / taken[0]).as_posix()} is there already; give another folder")
    for name, text in STARTER_FILES.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            _stop(
                f"{path.as_posix()} cannot be written: {error.strerror}; give another folder"
            )
        click.echo(f"wrote {path.as_posix()}")
    click.echo(f"next: msgen build {(folder / 'schema').as_posix()}")


def _stop(text: str) -> NoReturn:
    click.echo(f"{_coloured('error', 'error')}: {text}", err=True)
    sys.exit(WRONG)


def _default_output(schema_dir: Path) -> Path:
    """`generated/` beside the schema folder, as a path of the same kind as the one given."""
    if schema_dir.name in ("", "..") or schema_dir == Path():
        return schema_dir.resolve().parent / "generated"
    return schema_dir.parent / "generated"


def _summary(
    schema: Schema,
    files: dict[str, str],
    changes: list[Change],
    written: str,
    removed: str,
) -> str:
    from .texts import counted

    orphaned = sum(change.kind == "orphaned" for change in changes)
    to_write = len(changes) - orphaned
    messages = sum(len(group.live_messages) for group in schema.groups.values())
    return (
        f"{counted(len(schema.groups), 'group')}, {counted(messages, 'message')}: "
        f"{to_write} {written}, {len(files) - to_write} unchanged, {orphaned} {removed}"
    )


def _print_changes(changes: Iterable[Change]) -> None:
    for change in changes:
        click.echo(
            f"{_coloured(change.kind, change.kind)}: {change.path.as_posix()}", err=True
        )


def _print_problems(problems: Iterable[Problem]) -> None:
    for problem in problems:
        label = f" {problem.severity}: "
        place, _, rest = str(problem).partition(label)
        coloured = _coloured(f"{problem.severity}:", problem.severity)
        click.echo(f"{place} {coloured} {rest}", err=True)


def _coloured(text: str, kind: str) -> str:
    """Colour a word; click strips the colour again where the output is no terminal."""
    if os.environ.get("NO_COLOR"):
        return text
    return click.style(text, fg=_COLOURS.get(kind, "cyan"), bold=True)


if __name__ == "__main__":
    main()

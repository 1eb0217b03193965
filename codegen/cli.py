"""The command line: with cli_check.py it alone reads arguments, writes and decides exit codes.

Exit codes, everywhere: 0 fine, 1 findings, 2 the command or the schema is wrong.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .cli_check import check, diff, explain, rules
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
    from .model import Schema
    from .output import Change


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="msgen", prog_name="msgen")
def main() -> None:
    """Typed messages for inference engines: YAML schemas in, Python codecs out."""


for _command in (check, diff, rules, explain):
    main.add_command(_command)


@main.command()
@schema_argument
@out_option
@click.option(
    "--check", is_flag=True, help="Write nothing; list what is not up to date."
)
@click.option("--diff", is_flag=True, help="Write nothing; print what would change.")
@with_schema_errors
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
    folder = out or default_output(schema_dir)
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
        stop(f"{(folder / taken[0]).as_posix()} is there already; give another folder")
    for name, text in STARTER_FILES.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            stop(
                f"{path.as_posix()} cannot be written: {error.strerror}; give another folder"
            )
        click.echo(f"wrote {path.as_posix()}")
    click.echo(f"next: msgen build {(folder / 'schema').as_posix()}")


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
            f"{coloured(change.kind, change.kind)}: {change.path.as_posix()}", err=True
        )


if __name__ == "__main__":
    main()

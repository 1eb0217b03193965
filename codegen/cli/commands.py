"""Commands that write: `build`, `record`, `init`, and the group that all commands are in.

Exit codes, everywhere: 0 fine, 1 findings, 2 the command or the schema is wrong.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .check import check, diff, explain, rules
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
    from msgen.codegen.emit.output import FileChange
    from msgen.codegen.schema.model import Schema


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
@click.option(
    "--at-version",
    "at_versions",
    metavar="[GROUP=]N",
    multiple=True,
    help="As it was at version N of a group, or of all; needs --out.",
)
@with_schema_errors
def build(
    schema_dir: Path,
    out: Path | None,
    check: bool,
    diff: bool,
    at_versions: tuple[str, ...],
) -> None:
    """Generate the modules of SCHEMA_DIR.

    Only files whose content changes are written, all of them or none. Files of groups that are
    gone are removed; files that msgen did not generate are never touched. With --check or --diff,
    the exit code is 1 where something would change. With --at-version, what was added later is
    left out, so that builds of two versions can be tested against each other.
    """
    from msgen.codegen.emit import generate
    from msgen.codegen.emit.output import apply, find_changes
    from msgen.codegen.history import load_layouts
    from msgen.codegen.schema.loader import load_schema

    schema = load_schema(schema_dir)
    layouts = load_layouts(schema_dir)
    if at_versions:
        schema = _at_versions(schema, at_versions, out)
    files = generate(schema, layouts)
    folder = out or default_output(schema_dir)
    changes = find_changes(files, folder)
    if diff:
        for change in changes:
            click.echo("".join(change.diff()), nl=False)
    if check:
        for change in changes:
            kind = coloured(change.kind, change.kind)
            click.echo(f"{kind}: {change.path.as_posix()}", err=True)
    if check or diff:
        click.echo(_summary(schema, files, changes, "to write", "to remove"))
        sys.exit(FINDINGS if changes else 0)
    apply(changes, folder)
    click.echo(_summary(schema, files, changes, "written", "removed"))


@main.command()
@schema_argument
@click.argument("label")
@with_schema_errors
def record(schema_dir: Path, label: str) -> None:
    """Keep the layout of SCHEMA_DIR as the one of release LABEL.

    It goes to layouts.json in the schema folder, which is committed. From then on `build` puts into
    each module how the layout of that release differs from its own, if it does, and SchemaMismatch
    says it where a peer of that release sends.
    """
    from msgen.codegen.history import LAYOUTS_FILE, load_layouts
    from msgen.codegen.schema.loader import load_schema

    if not label.isprintable() or not 0 < len(label) <= 40:
        stop("the label is empty, too long or not printable; give one such as v1.2")
    layouts, added = load_layouts(schema_dir).with_release(
        load_schema(schema_dir), label
    )
    path = schema_dir / LAYOUTS_FILE
    if added:
        _write(path, layouts.text())
    what = ", ".join(added) or "nothing: every layout of today is known"
    click.echo(f"{path.as_posix()}: recorded {what}")


@main.command("json-schema")
def json_schema() -> None:
    """Print the JSON Schema of the schema language, for completion in editors."""
    from msgen.codegen.schema import json_schema as describe

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
        _write(folder / name, text, "; give another folder")
        click.echo(f"wrote {(folder / name).as_posix()}")
    click.echo(f"next: msgen build {(folder / 'schema').as_posix()}")


def _write(path: Path, text: str, remedy: str = "") -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        stop(f"{path.as_posix()} cannot be written: {error.strerror}{remedy}")


def _at_versions(schema: Schema, texts: tuple[str, ...], out: Path | None) -> Schema:
    from msgen.codegen.history import at_version, parse_versions

    if out is None:
        stop(
            "--at-version needs --out, so that the modules of today are not overwritten"
        )
    try:
        return at_version(schema, parse_versions(texts, schema))
    except ValueError as error:
        stop(f"--at-version: {error}")


def _summary(
    schema: Schema,
    files: dict[str, str],
    changes: list[FileChange],
    written: str,
    removed: str,
) -> str:
    from msgen.codegen.schema.texts import counted

    orphaned = sum(change.kind == "orphaned" for change in changes)
    to_write = len(changes) - orphaned
    messages = sum(len(group.live_messages) for group in schema.groups.values())
    return (
        f"{counted(len(schema.groups), 'group')}, {counted(messages, 'message')}: "
        f"{to_write} {written}, {len(files) - to_write} unchanged, {orphaned} {removed}"
    )

"""Commands that write: `build`, `record`, `init`, and the group that all commands are in.

Exit codes, everywhere: 0 fine, 1 findings, 2 the command or the schema is wrong.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from . import console
from .check import check, diff, explain, rules
from .console import out_option, schema_argument, stop, with_schema_errors


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
    from msgen.codegen.history import at_version, load_layouts, parse_versions
    from msgen.codegen.schema.loader import load_schema
    from msgen.codegen.schema.texts import counted

    schema = load_schema(schema_dir)
    layouts = load_layouts(schema_dir)
    if at_versions:
        if out is None:
            stop(
                "--at-version needs --out, so that the modules of today are not overwritten"
            )
        try:
            schema = at_version(schema, parse_versions(at_versions, schema))
        except ValueError as error:
            stop(f"--at-version: {error}")
    files = generate(schema, layouts)
    folder = out or console.default_output(schema_dir)
    changes = find_changes(files, folder)
    for change in changes if diff else ():
        click.echo("".join(change.diff()), nl=False)
    for change in changes if check else ():
        kind = console.coloured(change.kind)
        click.echo(f"{kind}: {change.path.as_posix()}", err=True)
    writes = not (check or diff)
    if writes:
        apply(changes, folder)
    orphaned = sum(change.kind == "orphaned" for change in changes)
    to_write = len(changes) - orphaned
    messages = sum(len(group.live_messages) for group in schema.groups.values())
    click.echo(
        f"{counted(len(schema.groups), 'group')}, {counted(messages, 'message')}: "
        f"{to_write} {'written' if writes else 'to write'}, "
        f"{len(files) - to_write} unchanged, "
        f"{orphaned} {'removed' if writes else 'to remove'}"
    )
    if changes and not writes:
        sys.exit(console.FINDINGS)


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

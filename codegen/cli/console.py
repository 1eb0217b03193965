"""What commands share: exit codes, arguments, colours, and how they end where something is wrong."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn

import click

FINDINGS = 1
WRONG = 2

_COLOURS = {"error": "red", "warning": "yellow", "changed": "yellow", "missing": "red"}

schema_argument = click.argument(
    "schema_dir", type=click.Path(path_type=Path, file_okay=False, exists=True)
)
out_option = click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the generated modules.  [default: generated/ beside SCHEMA_DIR]",
)


def with_schema_errors(command: Callable[..., None]) -> Callable[..., None]:
    """End a command with exit code 2 and all problems where the schema or output is wrong."""

    @wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        from msgen.codegen.emit.output import OutputError
        from msgen.codegen.history import AgainstError
        from msgen.codegen.schema.errors import SchemaError
        from msgen.codegen.schema.texts import counted

        # A build makes many objects and drops few: looking for garbage takes a fifth of its time.
        collects = gc.isenabled()
        gc.disable()
        try:
            command(*args, **kwargs)
        except SchemaError as error:
            for problem in error.problems:
                label = f" {problem.severity}: "
                place, _, rest = str(problem).partition(label)
                severity = coloured(f"{problem.severity}:", problem.severity)
                click.echo(f"{place} {severity} {rest}", err=True)
            errors = counted(len(error.problems), "error")
            click.echo(f"{errors}, nothing written", err=True)
            sys.exit(WRONG)
        except (AgainstError, OutputError) as error:
            stop(str(error))
        finally:
            if collects:
                gc.enable()

    return wrapped


def stop(text: str) -> NoReturn:
    """End with exit code 2 and a text."""
    click.echo(f"{coloured('error', 'error')}: {text}", err=True)
    sys.exit(WRONG)


def coloured(text: str, kind: str = "") -> str:
    """Colour a word; click strips the colour again where the output is no terminal."""
    if os.environ.get("NO_COLOR"):
        return text
    return click.style(text, fg=_COLOURS.get(kind or text, "cyan"), bold=True)


def default_output(schema_dir: Path) -> Path:
    """`generated/` beside the schema folder, as a path of the same kind as the one given."""
    if schema_dir.name in ("", "..") or schema_dir == Path():
        return schema_dir.resolve().parent / "generated"
    return schema_dir.parent / "generated"

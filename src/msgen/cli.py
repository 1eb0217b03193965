"""The `msgen` command: the generator's commands, and those that need the runtime.

The generator must run where neither torch nor ZeroMQ is installed, so what needs them is added
here and loads them when it is called.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from .codegen.cli import main
from .codegen.cli.console import WRONG

__all__ = ["main"]


@main.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Folder to write to; it is made if need be.  [default: the current one]",
)
def keys(names: tuple[str, ...], out: Path) -> None:
    """Make pairs of CURVE keys, for queues over tcp.

    For each NAME writes NAME.key, which the other ends need, and NAME.key_secret, which only you
    can read (mode 0600). Nothing is ever written over.
    """
    try:
        from .runtime.errors import SecurityError
        from .runtime.sockets.curve import make_keys
    except ImportError as error:
        click.echo(
            f"msgen keys needs the runtime ({error}); install it: pip install 'msgen[runtime]'",
            err=True,
        )
        sys.exit(WRONG)
    for name in names:
        try:
            public, secret = make_keys(out, name)
        except SecurityError as error:
            click.echo(str(error), err=True)
            sys.exit(WRONG)
        click.echo(f"{public}  public: give it to the other ends")
        click.echo(f"{secret}  secret: only this end reads it")

"""Commands: they read arguments, call the packages below, print, and decide the exit code.

`commands` holds those that write, `check` those that judge; `console` what they share. The rest of
the generator is imported by each command when it runs, so that `--help` is fast. May import all of
the generator; `msgen.cli` adds the commands that need the runtime.
"""

from .commands import main

__all__ = ["main"]

"""Commands: they read arguments, call the other rooms, print, and decide the exit code.

The rest of the generator is imported by each command when it runs, so that `--help` is fast.
"""

from .commands import main

__all__ = ["main"]

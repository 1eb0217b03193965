"""Documents whose files and commands are run in order, as a reader would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_STEPS = re.compile(
    r"```yaml\n(?P<schema>.*?)```"
    r"|```python\n# (?P<name>\S+)\n(?P<program>.*?)```"
    r"|^(?P<commands>    \$ [^\n]*\n(?:    [^\n]*\n)*)",
    re.DOTALL | re.MULTILINE,
)


class File(NamedTuple):
    """A file that the reader writes: `schema/engine.yaml`, or a program with its name in a comment."""

    name: str
    text: str


class Command(NamedTuple):
    """A command that the reader types, and what it prints; "" where the document does not say."""

    line: str
    shown: str


def steps(text: str) -> Iterator[File | Command]:
    """Yield what a document asks of its reader, in order."""
    for step in _STEPS.finditer(text):
        if step["schema"]:
            yield File("schema/engine.yaml", step["schema"])
        elif step["program"]:
            yield File(step["name"], step["program"])
        else:
            for block in re.split(r"^    \$ ", step["commands"], flags=re.MULTILINE)[
                1:
            ]:
                line, _, shown = block.partition("\n")
                yield Command(line, re.sub("^    ", "", shown, flags=re.MULTILINE))


def run_command(line: str, folder: Path) -> str:
    """Run a line in a shell whose `msgen` and `python` are this environment's."""
    tools = folder.parent / "bin"
    if not tools.exists():
        tools.mkdir()
        for name, start in (("msgen", "-m msgen.codegen.cli "), ("python", "")):
            text = f"#!/bin/sh\nexec '{sys.executable}' {start}\"$@\"\n"
            (tools / name).write_text(text)
            (tools / name).chmod(0o755)
    clean = {
        key: value for key, value in os.environ.items() if not key.startswith("GIT_")
    }
    done = subprocess.run(
        ["sh", "-c", line],
        cwd=folder,
        # Unbuffered, as at a terminal: else two processes would print in the order of their ends.
        env={
            **clean,
            "PATH": f"{tools}:{os.environ['PATH']}",
            "PYTHONUNBUFFERED": "1",
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode in (0, 1), done.stderr
    assert done.stderr == ""
    return done.stdout

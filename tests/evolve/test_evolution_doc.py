"""The worked example of docs/evolution.md: its schemas, commands and programs, run in order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from repositories import init

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "evolution.md").read_text(encoding="utf-8")
_STEPS = re.compile(
    r"```yaml\n(?P<schema>.*?)```"
    r"|```python\n# (?P<name>\S+)\n(?P<program>.*?)```"
    r"|^(?P<commands>    \$ [^\n]*\n(?:    [^\n]*\n)*)",
    re.DOTALL | re.MULTILINE,
)


def run(command: str, folder: Path) -> str:
    """Run a line of the document in a shell whose `msgen` and `python` are this environment's."""
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
        ["sh", "-c", command],
        cwd=folder,
        env={
            **clean,
            "PATH": f"{tools}:{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode in (0, 1), done.stderr
    assert done.stderr == ""
    return re.sub(r"\([0-9a-f]{12}\)", "(<commit>)", done.stdout)


def test_the_worked_example_is_what_happens(tmp_path: Path) -> None:
    git = init(tmp_path / "project")
    schema = git.folder / "schema" / "engine.yaml"
    schema.parent.mkdir()
    committed = False
    ran = 0
    for step in _STEPS.finditer(TEXT):
        if step["schema"]:
            if schema.exists() and not committed:
                git.commit({})
                git("switch", "--quiet", "--create", "work")
                committed = True
            schema.write_text(step["schema"])
        elif step["program"]:
            (git.folder / step["name"]).write_text(step["program"])
        else:
            for command, wanted in commands(step["commands"]):
                shown = run(command, git.folder)
                ran += 1
                if wanted:
                    assert shown == wanted, command
    assert ran == 7


def commands(block: str) -> list[tuple[str, str]]:
    """Split an indented block into commands and what they print."""
    lines = [line[4:] for line in block.splitlines()]
    found: list[tuple[str, str]] = []
    for line in lines:
        if line.startswith("$ "):
            found.append((line[2:], ""))
        else:
            command, text = found[-1]
            line = re.sub(r"\([0-9a-f]{12}\)", "(<commit>)", line)
            found[-1] = (command, f"{text}{line}\n")
    return found


def test_every_rule_that_the_document_names_is_one() -> None:
    from msgen.codegen.evolve import RULES

    named = set(re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", TEXT))
    assert named and named <= RULES.keys()

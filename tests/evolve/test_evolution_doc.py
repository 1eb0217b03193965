"""The worked example of docs/evolution.md: its schemas, commands and programs, run in order."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from documents import File, run_command, steps
from repositories import init

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "evolution.md").read_text(encoding="utf-8")


def test_the_worked_example_is_what_happens(tmp_path: Path) -> None:
    git = init(tmp_path / "project")
    (git.folder / "schema").mkdir()
    schemas = 0
    ran = 0
    for step in steps(TEXT):
        if isinstance(step, File):
            if step.name.startswith("schema/"):
                schemas += 1
                if schemas == 2:  # The first one is what `main` holds.
                    git.commit({})
                    git("switch", "--quiet", "--create", "work")
            (git.folder / step.name).write_text(step.text)
        else:
            shown = run_command(step.line, git.folder)
            ran += 1
            if step.shown:
                assert without_commits(shown) == without_commits(step.shown), step.line
    assert ran == 7


def without_commits(text: str) -> str:
    return re.sub(r"\([0-9a-f]{12}\)", "(<commit>)", text)


def test_every_rule_that_the_document_names_is_one() -> None:
    from msgen.codegen.evolve import RULES

    named = set(re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", TEXT))
    assert named and named <= RULES.keys()

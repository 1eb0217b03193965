"""The documents' Python runs as it stands, and shows what it prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from documents import File, run_command, steps

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
PATIENCE = 300


def blocks(name: str, kind: str) -> list[str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)


def run(script: Path, run_dir: Path, *path: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", script],
        env={
            **os.environ,
            "MSGEN_RUNTIME_DIR": str(run_dir),
            "PYTHONPATH": os.pathsep.join(map(str, path)),
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


EXAMPLES = [
    (name, number)
    for name in ("docs/runtime.md", "docs/workers.md")
    for number in range(len(blocks(name, "python")))
]


@pytest.mark.parametrize(("name", "number"), EXAMPLES)
def test_the_runtimes_examples_run(
    name: str, number: int, tmp_path: Path, run_dir: Path
) -> None:
    script = tmp_path / "example.py"
    script.write_text(blocks(name, "python")[number], encoding="utf-8")
    run(script, run_dir)


def test_the_readmes_five_minutes_are_what_happens(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    folder = tmp_path / "hello"
    (folder / "schema").mkdir(parents=True)
    ran = []
    for step in steps(text):
        if isinstance(step, File):
            (folder / step.name).write_text(step.text, encoding="utf-8")
        else:
            assert run_command(step.line, folder) == step.shown, step.line
            ran.append(step.line)
    assert ran == ["msgen build schema", "python engine.py & python server.py; wait"]


def test_the_figures_and_the_plot_are_those_of_the_committed_results() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.report", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_examples_readme_shows_what_the_quickstart_prints(run_dir: Path) -> None:
    shown = run(ROOT / "examples" / "quickstart.py", run_dir)
    text = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert indented(shown) in text


def indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())

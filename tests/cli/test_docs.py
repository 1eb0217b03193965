"""The documents' Python runs as it stands, and shows what it prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgen.cli import main

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


def test_the_readmes_examples_run(
    tmp_path: Path, run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    schema = tmp_path / "schema"
    schema.mkdir()
    (schema / "engine.yaml").write_text(blocks("README.md", "yaml")[0])
    result = CliRunner().invoke(main, ["build", "schema"])
    assert result.exit_code == 0, result.stderr
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for number, block in enumerate(blocks("README.md", "python")):
        script = tmp_path / f"example{number}.py"
        script.write_text(block, encoding="utf-8")
        shown = run(script, run_dir, tmp_path)
        if number == 0:
            assert indented(shown) in readme


def test_the_readme_shows_what_the_quickstart_prints(run_dir: Path) -> None:
    shown = run(ROOT / "examples" / "quickstart.py", run_dir)
    assert indented(shown) in (ROOT / "README.md").read_text(encoding="utf-8")


def indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())

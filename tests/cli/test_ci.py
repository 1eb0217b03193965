"""What runs msgen for other projects: the hooks for pre-commit, and the GitHub Action."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from repositories import Git, clone, init

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
SCRIPT = ROOT / ".ci" / "action"
JOBS = "group: jobs\nreceiver: worker\nmessages:\n  Job: {tag: 1, fields: {uid: int}}\n"
LATER = JOBS.replace("uid: int", "uid: u8")


@pytest.fixture
def command(tmp_path: Path) -> Path:
    """A command `msgen` that is found first."""
    folder = tmp_path / "bin"
    folder.mkdir()
    msgen = folder / "msgen"
    msgen.write_text(
        f"#!/bin/sh\nexec '{sys.executable}' -m msgen.codegen.cli \"$@\"\n"
    )
    msgen.chmod(0o755)
    return msgen


def environment(command: Path, **more: str) -> dict[str, str]:
    clean = {
        key: value for key, value in os.environ.items() if not key.startswith("GIT_")
    }
    return {
        **clean,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "MSGEN_COMMAND": str(command),
        **more,
    }


@pytest.fixture
def project(tmp_path: Path, command: Path) -> Git:
    """A repository whose branch `work` breaks what is in `main`; its modules are up to date."""
    git = init(tmp_path / "project")
    for branch, text in (("main", JOBS), ("work", LATER)):
        if branch == "work":
            git("switch", "--quiet", "--create", branch)
        (git.folder / "schema").mkdir(exist_ok=True)
        (git.folder / "schema" / "jobs.yaml").write_text(text)
        subprocess.run(
            [command, "build", "schema"],
            cwd=git.folder,
            check=True,
            capture_output=True,
        )
        git.commit({}, branch)
    return git


def run_hook(
    name: str, project: Git, command: Path
) -> subprocess.CompletedProcess[str]:
    (hook,) = [each for each in HOOKS if each["id"] == name]
    assert (hook["language"], hook["pass_filenames"]) == ("python", False)
    return subprocess.run(
        [*shlex.split(hook["entry"]), *hook["args"]],
        cwd=project.folder,
        env=environment(command, GIT_INDEX_FILE=".git/index", GIT_DIR=".git"),
        capture_output=True,
        text=True,
    )


def test_hooks_run_what_they_say(project: Git, command: Path) -> None:
    assert {each["id"] for each in HOOKS} == {
        "msgen-build",
        "msgen-check",
        "msgen-check-against",
    }
    assert run_hook("msgen-check", project, command).returncode == 0
    done = run_hook("msgen-check-against", project, command)
    assert done.returncode == 1
    assert "[INT_CHANGED]" in done.stderr
    (project.folder / "generated" / "jobs.py").unlink()
    assert run_hook("msgen-check", project, command).returncode == 1
    assert run_hook("msgen-build", project, command).returncode == 0
    assert run_hook("msgen-check", project, command).returncode == 0


def test_hooks_look_at_what_changes_their_result() -> None:
    for hook in HOOKS:
        assert re.search(hook["files"], "schema/jobs.yaml")
        assert not re.search(hook["files"], "src/schema.yaml")
    against = next(each for each in HOOKS if each["id"] == "msgen-check-against")
    for path in ("schema/msgen.yaml", "schema/layouts.json", "generated/jobs.py"):
        assert re.search(against["files"], path)


def run_action(folder: Path, command: Path, **inputs: str) -> Any:
    """Run the action's script as its last step does, with the inputs' defaults."""
    step = ACTION["runs"]["steps"][-1]
    values = {
        f"inputs.{name}": each["default"] for name, each in ACTION["inputs"].items()
    }
    values |= {"github.base_ref": "", "github.event.before": ""}
    values |= {name.replace("__", "."): text for name, text in inputs.items()}
    variables = {
        key: values[re.fullmatch(r"\$\{\{ (.*) \}\}", text)[1]]  # type: ignore[index]
        for key, text in step["env"].items()
    }
    return subprocess.run(
        [SCRIPT],
        cwd=folder,
        env=environment(command, **variables),
        capture_output=True,
        text=True,
    )


def shallow(project: Git, tmp_path: Path) -> Path:
    return clone(
        project.folder, tmp_path / "checkout", "--depth=1", "--branch=work", "--no-tags"
    ).folder


def test_the_action_compares_a_pull_request_with_its_target(
    project: Git, command: Path, tmp_path: Path
) -> None:
    folder = shallow(project, tmp_path)
    done = run_action(folder, command, github__base_ref="main")
    assert done.returncode == 1
    assert done.stdout.startswith(
        "::error file=schema/jobs.yaml,line=4,col=31,title=INT_CHANGED::"
    )


def test_the_action_compares_a_push_with_what_was_there(
    project: Git, command: Path, tmp_path: Path
) -> None:
    before = project("rev-parse", "main")
    folder = shallow(project, tmp_path)
    done = run_action(folder, command, github__event__before=before)
    assert (done.returncode, "INT_CHANGED" in done.stdout) == (1, True)
    for lost in ("0" * 40, "1" * 40):  # a new branch; one that was rewritten
        done = run_action(folder, command, github__event__before=lost)
        assert (done.returncode, done.stdout) == (0, "0 errors\n")


def test_the_action_passes_its_inputs_on(
    project: Git, command: Path, tmp_path: Path
) -> None:
    project("tag", "v1.0", "main")
    folder = shallow(project, tmp_path)
    done = run_action(folder, command, inputs__transitive="v1.*", inputs__format="text")
    assert "against v1.0 (" in done.stderr
    assert done.returncode == 1
    done = run_action(folder, command, inputs__out="elsewhere")
    assert "generated module is missing" in done.stdout
    hostile = "schema; touch owned"
    done = run_action(folder, command, inputs__schema=hostile)
    assert done.returncode == 2
    assert not (folder / "owned").exists()


def test_the_action_hands_over_what_its_script_reads() -> None:
    step = ACTION["runs"]["steps"][-1]
    read = set(re.findall(r"\$\{?(MSGEN_[A-Z_]+)", SCRIPT.read_text()))
    assert read - {"MSGEN_COMMAND"} == step["env"].keys()
    for name in ACTION["inputs"]:
        assert f"inputs.{name}" in (ROOT / "action.yml").read_text()
    for each in ACTION["runs"]["steps"]:
        assert "${{ inputs" not in each.get(
            "run", ""
        )  # else an input could be run as code

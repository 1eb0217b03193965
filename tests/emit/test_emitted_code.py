"""Emitted code as a reader and their tools see it: formatted, linted, typed, repeatable."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from building import write_schema
from golden import cases, good_schema
from msgen.codegen import generate, load_schema
from msgen.codegen.emit.output import apply, find_changes
from msgen.codegen.emit.python.module import USED_NAMES, local_name
from msgen.codegen.history.layouts import load_layouts
from schemas import RandomSource, SchemaMaker
from sizes import size

ROOT = Path(__file__).parents[2]
SEEDS = range(size("MSGEN_SAMPLE", 3, 40))
"""Random schemas whose modules are linted and type-checked."""
# ruff's own selection, and what people add to it first.
RUFF_RULES = "lint.select=['E4','E7','E9','F','I','W','B','UP']"


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages: the golden schemas and some random ones, generated."""
    folder = tmp_path_factory.mktemp("sample")
    schemas = {name: good_schema(name, folder / "golden") for name in cases("good")}
    for seed in SEEDS:
        files = SchemaMaker(RandomSource(seed)).files()
        schemas[f"random_{seed}"] = write_schema(
            folder / f"schemas_{seed}" / "schema", files
        )
    for name, schema_dir in schemas.items():
        out = folder / "packages" / name.replace("-", "_")
        files = generate(load_schema(schema_dir), load_layouts(schema_dir))
        apply(find_changes(files, out), out)
    return folder / "packages"


def run(*command: str | Path, cwd: Path) -> None:
    """Run a tool of this environment, showing what it printed where it fails."""
    done = subprocess.run(
        [sys.executable, "-m", *map(str, command)],
        cwd=cwd,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_is_formatted_as_ruff_formats(sample: Path) -> None:
    run("ruff", "format", "--isolated", "--no-cache", "--diff", ".", cwd=sample)


def test_it_passes_ruff(sample: Path) -> None:
    run("ruff", "check", "--isolated", "--no-cache", ".", cwd=sample)
    run(
        "ruff",
        "check",
        "--isolated",
        "--no-cache",
        "--config",
        RUFF_RULES,
        ".",
        cwd=sample,
    )


@pytest.mark.processes
def test_it_passes_mypy_strict(sample: Path) -> None:
    packages = [
        option for each in sorted(sample.iterdir()) for option in ("-p", each.name)
    ]
    cache = sample.parent / "mypy_cache"
    strict = ("--strict", "--warn-unreachable")
    run("mypy", *strict, "--cache-dir", cache, *packages, cwd=sample)


def test_it_asks_no_formatter_to_look_away_and_nests_no_comprehensions(
    sample: Path,
) -> None:
    kinds = (ast.ListComp, ast.DictComp)
    for path in sample.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "fmt: skip" not in text
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, kinds):
                inner = [each for each in ast.walk(node) if isinstance(each, kinds)]
                assert inner == [node], path


def test_it_is_the_same_in_another_folder_with_another_hash_seed(
    tmp_path: Path,
) -> None:
    outputs = []
    for number, seed in enumerate(("0", "4711")):
        folder = tmp_path / f"copy {number}"
        schema = good_schema("everything", folder)
        subprocess.run(
            [sys.executable, "-m", "msgen.codegen.cli", "build", schema],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        )
        generated = schema.parent / "generated"
        outputs.append({path.name: path.read_bytes() for path in generated.iterdir()})
    assert outputs[0] == outputs[1]
    assert str(tmp_path).encode() not in b"".join(outputs[0].values())


def test_no_name_that_functions_use_can_be_a_local_variable(sample: Path) -> None:
    """The list of such names is written out in the generator; this is what keeps it whole."""
    used: set[str] = set()
    for path in sample.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = {
            alias.asname or alias.name
            for node in tree.body
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for alias in node.names
        }
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                used |= names_from_outside(node) - imported
    functions = {name for name in used if name.endswith(("_to_slots", "_from_slots"))}
    assert local_name("user_to_slots") == "user_to_slots_"
    used = {name for name in used if name[0].islower()} - functions
    assert used <= USED_NAMES
    assert used >= {"abs", "depth", "frames", "len", "msg", "slots", "type", "value"}


def names_from_outside(function: ast.FunctionDef) -> set[str]:
    """The names of arguments, and those that a function reads but does not assign."""
    arguments = {argument.arg for argument in function.args.args}
    body = [node for statement in function.body for node in ast.walk(statement)]
    names = [node for node in body if isinstance(node, ast.Name)]
    assigned = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    return arguments | (read - assigned)

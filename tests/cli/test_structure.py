"""The shape of the code: rooms of a readable size, and documents that show them as they are."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = [
    path
    for folder in ("codegen", "runtime", "benchmarks", "examples", "fuzz", "tests")
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and not {"__pycache__", "vectors"} & set(path.parts)
]
PACKAGE = [
    path for path in SOURCES if path.parts[len(ROOT.parts)] in ("codegen", "runtime")
]
MOST_FILES = 15
MOST_LINES = {".py": 350, ".c": 600, ".h": 600, ".j2": 100}


def test_no_folder_has_more_files_than_one_can_look_through() -> None:
    counts = Counter(path.parent for path in SOURCES if path.suffix != ".so")
    assert {path: count for path, count in counts.items() if count > MOST_FILES} == {}


def test_files_are_of_a_readable_size() -> None:
    for path in PACKAGE:
        if path.suffix in MOST_LINES:
            lines = len(path.read_text(encoding="utf-8").splitlines())
            assert lines <= MOST_LINES[path.suffix], path


def test_every_module_says_what_it_is_for() -> None:
    for path in PACKAGE:
        if path.suffix == ".py":
            text = path.read_text(encoding="utf-8")
            assert ast.get_docstring(ast.parse(text)), f"{path} has no docstring"


def test_a_package_opens_with_a_note_and_holds_names_only() -> None:
    for path in PACKAGE:
        if path.name != "__init__.py" or path == ROOT / "codegen" / "__init__.py":
            continue  # codegen's own loads its names on first use
        tree = ast.parse(path.read_text(encoding="utf-8"))
        body = tree.body[1:]
        assert len((ast.get_docstring(tree) or "").splitlines()) <= 20, path
        for node in body:
            is_all = (
                isinstance(node, ast.Assign)
                and ast.unparse(node.targets[0]) == "__all__"
            )
            assert is_all or isinstance(node, (ast.Import, ast.ImportFrom)), (
                path,
                node.lineno,
            )


def test_the_walks_of_the_architecture_lead_through_what_is_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z_/]+(?:\.py)?/?)` \| `([\w.]+)`", text, re.MULTILINE)
    assert len(rows) >= 20
    for file, name in rows:
        (path,) = (
            each
            for part in ("codegen", "runtime")
            if (each := ROOT / part / file).exists()
        )
        if path.is_dir():
            assert (path / name).exists(), f"{file}{name}"
            continue
        names = name.split(".")
        body: list[ast.stmt] = ast.parse(path.read_text(encoding="utf-8")).body
        for each in names:
            found = [
                node
                for node in body
                if isinstance(
                    node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
                )
                and node.name == each
            ]
            assert found, f"{file}: {name}"
            body = found[0].body


def test_no_walk_is_longer_than_six_rows() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    tables = re.findall(r"\| file \| function \|.*\n\|[-|]+\n((?:\|.*\n)+)", text)
    assert len(tables) == 4
    assert all(len(table.splitlines()) <= 6 for table in tables)

"""Bad schemas: every fault is reported in full, at its place, and nothing is written.

Each folder of `golden/bad` holds a schema with a fault and, in `stderr.txt`, all that
`msgen build schema` says about it. To accept changed texts, run with MSGEN_UPDATE_GOLDEN=1 and
read the difference.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from building import write_schema
from click.testing import CliRunner, Result
from msgen.codegen import SchemaError, load_schema
from msgen.codegen.cli.commands import main
from msgen.codegen.cli.console import WRONG
from msgen.codegen.history.layouts import LAYOUTS_WRONG
from msgen.codegen.schema.rule import ERROR
from msgen.codegen.schema.rules import RULES
from msgen.codegen.schema.yaml import events as yaml_events

ROOT = Path(__file__).parents[1]
CASES = ROOT / "golden" / "bad"
UPDATE = os.environ.get("MSGEN_UPDATE_GOLDEN") == "1"

LEAST_CASES = 60
_PROBLEM = re.compile(r"(\S+):(\d+):(\d+): error: .+ \[([a-z-]+)\]\n")
_UNCOVERED = frozenset(
    {
        "folder-name",  # every case has its schema in `schema/`
    }
)
"""Rules that no case can show; each needs a reason here."""


def _names() -> list[str]:
    return sorted(path.name for path in CASES.iterdir() if path.is_dir())


def _build(case: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Result:
    """Run `msgen build schema` on a copy of a case, in ``folder``."""
    shutil.copytree(case / "schema", folder / "schema")
    monkeypatch.chdir(folder)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return CliRunner().invoke(main, ["build", "schema"])


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def _read(golden: Path) -> str:
    # Not read_text: it would hide a carriage return.
    return golden.read_bytes().decode("utf-8")


@pytest.mark.parametrize("name", _names())
def test_bad_schema_is_explained(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES / name
    result = _build(case, tmp_path, monkeypatch)

    assert result.exit_code == WRONG, result.exception or result.output
    assert result.stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == ["schema"]
    assert _contents(tmp_path / "schema") == _contents(case / "schema")
    golden = case / "stderr.txt"
    if UPDATE:
        golden.write_bytes(result.stderr.encode("utf-8"))
    assert result.stderr == _read(golden)


@pytest.mark.parametrize("name", _names())
def test_text_is_the_same_without_libyaml(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yaml_events, "_FAST_LOADER", yaml_events.PureLoader)
    result = _build(CASES / name, tmp_path, monkeypatch)

    assert result.exit_code == WRONG
    assert result.stderr == _read(CASES / name / "stderr.txt")


@pytest.mark.parametrize("name", _names())
def test_golden_is_well_formed(name: str) -> None:
    text = _read(CASES / name / "stderr.txt")
    *problems, summary = text.splitlines(keepends=True)
    matches = [_PROBLEM.fullmatch(problem) for problem in problems]

    assert all(matches)
    count = len(problems)
    assert (
        summary == f"{count} {'error' if count == 1 else 'errors'}, nothing written\n"
    )
    places = [(m[1], int(m[2]), int(m[3])) for m in matches if m is not None]
    assert places == sorted(places)
    for path, line, column in places:
        _assert_inside(CASES / name / path, line, column)


def _assert_inside(path: Path, line: int, column: int) -> None:
    """Check that a place exists; the end of a line and of the file count as places."""
    if path.is_dir():
        assert (line, column) == (1, 1)
        return
    text = path.read_bytes().decode("utf-8-sig", "replace")
    # As YAML splits lines, so that the file of the line separators counts the same.
    lines = re.split("\r\n|[\n\r\x85\u2028\u2029]", text)
    assert line <= len(lines)
    assert column <= len(lines[line - 1]) + 1


def test_every_rule_has_a_case() -> None:
    rules = {rule.id for rule in (*RULES, LAYOUTS_WRONG) if rule.severity == ERROR}
    shown = Counter(
        match[4]
        for name in _names()
        for match in _PROBLEM.finditer(_read(CASES / name / "stderr.txt"))
    )

    assert len(_names()) >= LEAST_CASES
    assert rules - shown.keys() - _UNCOVERED == set()
    # The other way round too: a rule that is reported in a new way must not escape this test.
    assert shown.keys() - rules == set()
    assert not _UNCOVERED & shown.keys()


def test_nullable_type_needs_no_quotes_in_either_parser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "group: main\nstructs:\n  A:\n    fields: {x: {type: int?, doc: d}, y: str?}\n"
    )
    schema_dir = write_schema(tmp_path / "schema", {"main.yaml": text})
    fast = load_schema(schema_dir)
    monkeypatch.setattr(yaml_events, "_FAST_LOADER", yaml_events.PureLoader)

    assert load_schema(schema_dir) == fast


def test_dangling_link_is_reported(tmp_path: Path) -> None:
    schema_dir = write_schema(tmp_path / "schema", {"main.yaml": "group: main\n"})
    (schema_dir / "other.yaml").symlink_to("nowhere")

    with pytest.raises(SchemaError) as caught:
        load_schema(schema_dir)

    assert [problem.rule.id for problem in caught.value.problems] == ["unreadable-file"]
    assert "No such file" in str(caught.value)


def test_hidden_files_are_not_read(tmp_path: Path) -> None:
    schema_dir = write_schema(
        tmp_path / "schema", {"main.yaml": "group: main\n", ".draft.yaml": "["}
    )
    write_schema(schema_dir / ".idea", {"settings.yml": "["})
    # The lock of an editor: a link to nowhere.
    (schema_dir / ".#main.yaml").symlink_to("nowhere")

    assert list(load_schema(schema_dir).groups) == ["main"]

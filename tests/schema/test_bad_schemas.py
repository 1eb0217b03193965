"""Bad schemas: every fault is reported in full, at its place, and nothing is written.

The pages of `golden/bad` show schemas with a fault and, below each, all that `msgen build schema`
says about it. To accept changed texts, run `make golden` and read the difference.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from building import write_schema
from click.testing import CliRunner, Result
from golden import cases, write_files
from msgen.codegen import SchemaError, load_schema
from msgen.codegen.cli.commands import main
from msgen.codegen.cli.console import WRONG
from msgen.codegen.history.layouts import LAYOUTS_WRONG
from msgen.codegen.schema.rule import ERROR
from msgen.codegen.schema.rules import RULES
from msgen.codegen.schema.yaml import events as yaml_events

ROOT = Path(__file__).parents[1]
NAMES = list(cases("bad"))

LEAST_CASES = 60
_PROBLEM = re.compile(r"(\S+):(\d+):(\d+): error: .+ \[([a-z-]+)\]\n")
_UNCOVERED = frozenset(
    {
        "folder-name",  # every case has its schema in `schema/`
    }
)
"""Rules that no case can show; each needs a reason here."""


def _build(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Result:
    """Run `msgen build schema` on the files of a case, in ``folder``."""
    write_files(folder, cases("bad")[name].files())
    monkeypatch.chdir(folder)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return CliRunner().invoke(main, ["build", "schema"])


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("name", NAMES)
def test_bad_schema_is_explained(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = cases("bad")[name]
    result = _build(name, tmp_path, monkeypatch)

    assert result.exit_code == WRONG, result.exception or result.output
    assert result.stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == ["schema"]
    assert _contents(tmp_path / "schema") == case.files("schema/")
    case.check("text", result.stderr)


@pytest.mark.parametrize("name", NAMES)
def test_text_is_the_same_without_libyaml(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yaml_events, "_FAST_LOADER", yaml_events.PureLoader)
    result = _build(name, tmp_path, monkeypatch)

    assert result.exit_code == WRONG
    assert result.stderr == cases("bad")[name].text("text")


@pytest.mark.parametrize("name", NAMES)
def test_golden_is_well_formed(name: str, tmp_path: Path) -> None:
    case = cases("bad")[name]
    write_files(tmp_path, case.files())
    *problems, summary = case.text("text").splitlines(keepends=True)
    matches = [_PROBLEM.fullmatch(problem) for problem in problems]

    assert all(matches)
    count = len(problems)
    assert (
        summary == f"{count} {'error' if count == 1 else 'errors'}, nothing written\n"
    )
    places = [(m[1], int(m[2]), int(m[3])) for m in matches if m is not None]
    assert places == sorted(places)
    for path, line, column in places:
        _assert_inside(tmp_path / path, line, column)


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
        for case in cases("bad").values()
        for match in _PROBLEM.finditer(case.text("text"))
    )

    assert len(NAMES) >= LEAST_CASES
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

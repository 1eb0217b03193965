"""The rules of a diff, one pair of versions for each, and pairs that break nobody.

A folder `breaking/<RULE>` holds a version in `previous`, a later one in `current`, and all that
`msgen diff current --against ./previous` prints, as text and as JSON. `breaking/compatible` holds
pairs that must not fail. MSGEN_UPDATE_GOLDEN=1 writes the expected files anew.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from msgen.codegen import load_schema
from msgen.codegen.cli.commands import main
from msgen.codegen.evolve import RULES
from msgen.codegen.evolve.findings import diff
from msgen.codegen.schema.fingerprint import Fingerprints
from msgen.codegen.schema.rule import ERROR

BREAKING = Path(__file__).parents[1] / "breaking"
COMPATIBLE = BREAKING / "compatible"
UPDATE = os.environ.get("MSGEN_UPDATE_GOLDEN") == "1"
_WITHOUT_PAIR = {"LAYOUT_CHANGED"}
"""A net for what no other rule explains; the property test looks for such a pair."""

PAIRS = sorted(path for path in BREAKING.iterdir() if path != COMPATIBLE)
HARMLESS = sorted(COMPATIBLE.iterdir())


def _diff(case: Path, folder: Path, monkeypatch: Any, *options: str) -> Result:
    """Run `msgen diff` on a copy of a pair, outside of this repository."""
    if not folder.exists():
        shutil.copytree(case, folder)
    monkeypatch.chdir(folder)
    return CliRunner().invoke(
        main, ["diff", "current", "--against", "./previous", *options]
    )


def _check_golden(path: Path, text: str) -> None:
    if UPDATE:
        path.write_bytes(text.encode())
    assert text == path.read_bytes().decode()


def _name(path: Path) -> str:
    return path.name


def test_every_rule_has_a_pair() -> None:
    assert {path.name for path in PAIRS} == RULES.keys() - _WITHOUT_PAIR


@pytest.mark.parametrize("case", PAIRS, ids=_name)
def test_the_rule_is_told(
    case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = _diff(case, tmp_path / "case", monkeypatch)
    data = _diff(case, tmp_path / "case", monkeypatch, "--format", "json")
    assert text.stderr == data.stderr == ""
    _check_golden(case / "expected.txt", text.stdout)
    _check_golden(case / "expected.json", data.stdout)
    (comparison,) = json.loads(data.stdout)["comparisons"]
    findings = comparison["findings"] + json.loads(data.stdout)["waivers"]
    assert case.name in {each["rule"] for each in findings}
    counts = [each for each in findings if each["waived"] is None]
    failing = any(each["severity"] == ERROR for each in counts)
    assert text.exit_code == data.exit_code == int(failing)


@pytest.mark.parametrize("case", PAIRS, ids=_name)
def test_every_finding_has_its_place(
    case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = json.loads(
        _diff(case, tmp_path / "case", monkeypatch, "--format", "json").stdout
    )
    for finding in data["comparisons"][0]["findings"]:
        for key in ("place", "old_place"):
            place = finding[key]
            if place is None or (case.name == "GROUP_REMOVED" and key == "place"):
                continue
            lines = (tmp_path / "case" / place["path"]).read_text().splitlines()
            assert lines[place["line"] - 1][place["column"] - 1 :].strip(), finding


@pytest.mark.parametrize("case", HARMLESS, ids=_name)
def test_what_breaks_nobody_does_not_fail(
    case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = _diff(case, tmp_path / "case", monkeypatch)
    _check_golden(case / "expected.txt", result.stdout)
    assert result.exit_code == 0
    assert ": error: " not in result.stdout


@pytest.mark.parametrize("case", [*PAIRS, *HARMLESS], ids=_name)
def test_the_verdict_on_each_group_is_its_fingerprint(case: Path) -> None:
    old, new = load_schema(case / "previous"), load_schema(case / "current")
    for verdict in diff(old, new).verdicts:
        prints = [
            Fingerprints(schema).of(schema.groups[verdict.group])
            for schema in (old, new)
            if verdict.group in schema.groups
        ]
        if len(prints) == 2:
            assert verdict.same_fingerprint == (prints[0] == prints[1])


@pytest.mark.parametrize("case", [*PAIRS, *HARMLESS], ids=_name)
def test_a_schema_is_compatible_with_itself(case: Path) -> None:
    for version in ("previous", "current"):
        schema = load_schema(case / version)
        found = diff(schema, load_schema(case / version))
        assert found.findings == ()
        assert found.rollout == "any order"


def test_a_rule_says_what_to_do() -> None:
    for rule in RULES.values():
        assert rule.purpose[-1] != "."
        assert rule.why.endswith(".") and rule.instead.endswith(".")
        assert {rule.severity, rule.harmless} <= {"error", "warning", "note"}
        if rule.severity == ERROR:
            assert len(rule.why) > 60

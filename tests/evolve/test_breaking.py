"""The rules of a diff, one pair of versions for each, and pairs that break nobody.

A page of `golden/diff` shows a schema and, for each rule, an edit of it and all that
`msgen diff current --against ./previous` prints, as text and as JSON. `harmless.md` has the pairs
that must not fail. `make golden` writes the outputs anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from golden import cases, write_files
from msgen.codegen import load_schema
from msgen.codegen.cli.commands import main
from msgen.codegen.evolve import RULES
from msgen.codegen.evolve.findings import diff
from msgen.codegen.schema.fingerprint import Fingerprints
from msgen.codegen.schema.rule import ERROR

_WITHOUT_PAIR = {"LAYOUT_CHANGED"}
"""A net for what no other rule explains; the property test looks for such a pair."""

NAMES = list(cases("diff"))
HARMLESS = [n for n, case in cases("diff").items() if case.page.stem == "harmless"]
PAIRS = [name for name in NAMES if name not in HARMLESS]


@pytest.fixture
def folder(name: str, tmp_path: Path) -> Path:
    """The two versions of a pair, outside of this repository."""
    for version, files in cases("diff")[name].versions().items():
        write_files(tmp_path / version, files)
    return tmp_path


def _diff(folder: Path, monkeypatch: Any, *options: str) -> Result:
    monkeypatch.chdir(folder)
    return CliRunner().invoke(
        main, ["diff", "current", "--against", "./previous", *options]
    )


def test_every_rule_has_a_pair() -> None:
    assert set(PAIRS) == RULES.keys() - _WITHOUT_PAIR


@pytest.mark.parametrize("name", PAIRS)
def test_the_rule_is_told(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = _diff(folder, monkeypatch)
    data = _diff(folder, monkeypatch, "--format", "json")
    assert text.stderr == data.stderr == ""
    cases("diff")[name].check("text", text.stdout)
    cases("diff")[name].check("json", data.stdout)
    (comparison,) = json.loads(data.stdout)["comparisons"]
    findings = comparison["findings"] + json.loads(data.stdout)["waivers"]
    assert name in {each["rule"] for each in findings}
    counts = [each for each in findings if each["waived"] is None]
    failing = any(each["severity"] == ERROR for each in counts)
    assert text.exit_code == data.exit_code == int(failing)


@pytest.mark.parametrize("name", PAIRS)
def test_every_finding_has_its_place(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = json.loads(_diff(folder, monkeypatch, "--format", "json").stdout)
    for finding in data["comparisons"][0]["findings"]:
        for key in ("place", "old_place"):
            place = finding[key]
            if place is None or (name == "GROUP_REMOVED" and key == "place"):
                continue
            lines = (folder / place["path"]).read_text().splitlines()
            assert lines[place["line"] - 1][place["column"] - 1 :].strip(), finding


@pytest.mark.parametrize("name", HARMLESS)
def test_what_breaks_nobody_does_not_fail(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = _diff(folder, monkeypatch)
    cases("diff")[name].check("text", result.stdout)
    assert result.exit_code == 0
    assert ": error: " not in result.stdout


@pytest.mark.parametrize("name", NAMES)
def test_the_verdict_on_each_group_is_its_fingerprint(folder: Path) -> None:
    old, new = load_schema(folder / "previous"), load_schema(folder / "current")
    for verdict in diff(old, new).verdicts:
        prints = [
            Fingerprints(schema).of(schema.groups[verdict.group])
            for schema in (old, new)
            if verdict.group in schema.groups
        ]
        if len(prints) == 2:
            assert verdict.same_fingerprint == (prints[0] == prints[1])


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_compatible_with_itself(folder: Path) -> None:
    for version in ("previous", "current"):
        schema = load_schema(folder / version)
        found = diff(schema, load_schema(folder / version))
        assert found.findings == ()
        assert found.rollout == "any order"


def test_a_rule_says_what_to_do() -> None:
    for rule in RULES.values():
        assert rule.purpose[-1] != "."
        assert rule.why.endswith(".") and rule.instead.endswith(".")
        assert {rule.severity, rule.harmless} <= {"error", "warning", "note"}
        if rule.severity == ERROR:
            assert len(rule.why) > 60

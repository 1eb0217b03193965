"""Waivers: deliberate breaks, declared in `msgen.yaml` beside the groups."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from building import write_schema
from click.testing import CliRunner, Result
from msgen.codegen import SchemaError, load_schema
from msgen.codegen.cli.commands import main
from msgen.codegen.evolve import Waiver, apply_waivers, load_waivers
from msgen.codegen.evolve.findings import diff
from msgen.codegen.schema.errors import Place
from repositories import init

OLD = "group: jobs\nreceiver: worker\nmessages:\n  Job: {tag: 1, fields: {uid: int, old: str}}\n"
NEW = OLD.replace("uid: int, old: str", "uid: u8")
WAIVERS = """\
waivers:
  - rule: INT_CHANGED
    place: jobs.Job.uid
    reason: All processes restart together.
    until: 2999-01-31
  - {rule: FIELD_DELETED, place: jobs.Job.old, reason: It was never read., until: "2999-01-31"}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_schema(tmp_path / "old", {"jobs.yaml": OLD})
    monkeypatch.chdir(tmp_path)
    return write_schema(tmp_path / "schema", {"jobs.yaml": NEW})


def msgen(*options: str) -> Result:
    return CliRunner().invoke(main, ["diff", "schema", "--against", "./old", *options])


def test_a_waived_finding_does_not_fail(folder: Path) -> None:
    assert msgen().exit_code == 1
    write_schema(folder, {"msgen.yaml": WAIVERS})
    result = msgen("--strict")
    assert result.exit_code == 0
    assert "schema/jobs.yaml:4:31: waived: field 'uid'" in result.stdout
    assert "    waived until 2999-01-31: It was never read.\n" in result.stdout
    assert result.stdout.endswith("0 errors, 2 waived\n")


def test_one_waiver_is_for_one_rule_at_one_place(folder: Path) -> None:
    write_schema(
        folder, {"msgen.yaml": WAIVERS.replace("jobs.Job.uid", "jobs.Job.old")}
    )
    result = msgen()
    assert result.exit_code == 1
    assert ": error: field 'uid'" in result.stdout
    assert (
        "schema/msgen.yaml:2:11: warning: the waiver of INT_CHANGED at 'jobs.Job.old' fits no "
        "finding [WAIVER_UNUSED]\n"
    ) in result.stdout


def test_a_renamed_thing_may_be_waived_by_either_name(folder: Path) -> None:
    write_schema(folder, {"jobs.yaml": OLD.replace("uid: int", "id: int")})
    for name in ("jobs.Job.uid", "jobs.Job.id"):
        text = WAIVERS.partition("  - {")[0].replace("jobs.Job.uid", name)
        text = text.replace("INT_CHANGED", "FIELD_RENAMED_WITHOUT_WAS")
        write_schema(folder, {"msgen.yaml": text})
        assert msgen().exit_code == 0


@pytest.mark.parametrize(("today", "counts"), [(30, False), (31, False), (1, True)])
def test_a_waiver_counts_up_to_its_day(folder: Path, today: int, counts: bool) -> None:
    found = diff(load_schema(folder.parent / "old"), load_schema(folder))
    waivers = [
        Waiver(rule, place, "Why.", "2026-01-31", Place("schema/msgen.yaml", line))
        for line, (rule, place) in enumerate(
            [("INT_CHANGED", "jobs.Job.uid"), ("FIELD_DELETED", "jobs.Job.old")], 1
        )
    ]
    day = date(2026, 2 if counts else 1, today)
    (judged,), about = apply_waivers([found], waivers, day)
    assert any(each.is_breaking for each in judged.findings) == counts
    assert [each.change.rule.id for each in about] == ["WAIVER_EXPIRED"] * 2 * counts
    assert all(each.is_breaking for each in about)


def test_a_waiver_is_used_if_any_version_needs_it(folder: Path) -> None:
    old, new = load_schema(folder.parent / "old"), load_schema(folder)
    waiver = Waiver("INT_CHANGED", "jobs.Job.uid", "Why.", "2999-01-31", Place("x"))
    comparisons = [diff(new, new), diff(old, new)]
    assert apply_waivers(comparisons, [waiver], date(2026, 1, 1))[1] == []


def test_a_schema_without_waivers_has_none(folder: Path) -> None:
    assert load_waivers(folder) == []
    for text in ("", "\n", "waivers: []\n", "{}\n"):
        write_schema(folder, {"msgen.yaml": text})
        assert load_waivers(folder) == []


def test_a_waiver_is_not_unused_where_nothing_was_with_diffs(
    folder: Path, tmp_path: Path
) -> None:
    git = init(tmp_path / "repository")
    git.commit({"README": "text"})
    schema = write_schema(
        git.folder / "schema", {"jobs.yaml": NEW, "msgen.yaml": WAIVERS}
    )
    arguments = ["diff", str(schema), "--against", "HEAD", "--allow-missing"]
    result = CliRunner().invoke(main, [*arguments, "--strict"])
    assert (result.exit_code, "WAIVER" in result.stdout) == (0, False)


def test_the_file_is_no_group(folder: Path) -> None:
    write_schema(folder, {"msgen.yaml": WAIVERS})
    assert list(load_schema(folder).groups) == ["jobs"]


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (
            "waiver: []\n",
            [
                "1:1: error: settings 'msgen.yaml' has no key 'waiver'; did you mean 'waivers'? "
                "[unknown-key]"
            ],
        ),
        ("waivers: {}\n", ["1:10: error: 'waivers' of settings 'msgen.yaml' is a mapping; expected a list of waivers [wrong-shape]"]),
        ("waivers: [INT_CHANGED]\n", ["1:11: error: the waiver is 'INT_CHANGED'; expected a mapping with the keys rule, place, reason, until [wrong-shape]"]),
        (
            WAIVERS.replace("    until: 2999-01-31\n", ""),
            [
                "2:5: error: the waiver needs the key 'until', the last day on which it counts: "
                "add 'until: 2030-01-31' [missing-key]"
            ],
        ),
        (
            WAIVERS.replace("    until: 2999-01-31\n", "    until: soon\n"),
            [
                "5:12: error: 'until' of the waiver is 'soon'; expected a day, as in 2030-01-31 "
                "[wrong-shape]"
            ],
        ),
        (
            WAIVERS.replace("    until: 2999-01-31\n", "    until: 2999-02-31\n"),
            [
                "5:12: error: 'until' of the waiver is '2999-02-31'; expected a day, as in "
                "2030-01-31 [wrong-shape]"
            ],
        ),
        (
            WAIVERS.replace("    until: 2999-01-31\n", "    until: [1]\n"),
            ["5:12: error: 'until' of the waiver is a list; expected a date [wrong-shape]"],
        ),
        (
            WAIVERS.replace("INT_CHANGED", "INT_CHANGE"),
            [
                "2:11: error: 'rule' of a waiver is 'INT_CHANGE'; there is no rule 'INT_CHANGE'; "
                "did you mean 'INT_CHANGED'? [unknown-rule]"
            ],
        ),
        (
            WAIVERS.replace("INT_CHANGED", "int-changed"),
            [
                "2:11: error: 'rule' of a waiver is 'int-changed'; write 'INT_CHANGED' "
                "[unknown-rule]"
            ],
        ),
        (
            WAIVERS.replace("rule: INT", "rules: INT"),
            [
                "2:5: error: the waiver needs the key 'rule', the finding's rule: add 'rule: "
                "INT_CHANGED' [missing-key]",
                "2:5: error: the waiver has no key 'rules'; did you mean 'rule'? [unknown-key]",
            ],
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_an_error_with_its_place(
    folder: Path, text: str, problems: list[str]
) -> None:
    write_schema(folder, {"msgen.yaml": text})
    result = msgen()
    assert result.exit_code == 2
    assert result.stderr.splitlines()[:-1] == [
        f"schema/msgen.yaml:{problem}" for problem in problems
    ]


def test_a_file_that_cannot_be_read_is_an_error(folder: Path) -> None:
    (folder / "msgen.yaml").write_bytes(b"\xff\xfe")
    with pytest.raises(SchemaError, match="unreadable-file"):
        load_waivers(folder)

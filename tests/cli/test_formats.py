"""Reports in every format: what people and other programs read.

`vectors/sarif-schema-2.1.0.json` is the schema that OASIS publishes with SARIF 2.1.0, errata 01,
unchanged; its copyright is OASIS Open's, which allows copies of its specifications.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from building import write_schema
from click.testing import CliRunner, Result
from golden import cases, write_files
from msgen.codegen.cli.commands import main
from msgen.codegen.evolve import RULES
from repositories import init

SARIF = json.loads(
    (Path(__file__).parents[1] / "vectors" / "sarif-schema-2.1.0.json").read_text()
)
OLD = """\
group: jobs
receiver: worker
senders: [api]
messages:
  Job:
    tag: 1
    fields:
      uid: int
      text: str
"""
NEW = """\
group: jobs
receiver: worker
senders: [api]
imports: [types]
version: 2
messages:
  Job:
    tag: 1
    fields:
      uid: u8
      text: {type: str, max_len: 5}
      more: {type: int, default: 0, since: 2}
"""
TYPES = "group: types\nstructs:\n  A: {fields: {x: int}}\n"
WAIVER = """\
waivers:
  - rule: LIMIT_TIGHTENED
    place: jobs.Job.text
    reason: "100% sure: no text is longer, <yet>"
    until: 2999-12-31
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in a repository, with findings of every kind; it is the working directory."""
    git = init(tmp_path / "repository")
    git.commit({"parts/engine/schema/jobs.yaml": OLD})
    folder = git.folder / "parts" / "engine"
    write_schema(
        folder / "schema", {"jobs.yaml": NEW, "types.yaml": TYPES, "msgen.yaml": WAIVER}
    )
    monkeypatch.chdir(folder)
    monkeypatch.delenv("GIT_DIR", raising=False)
    return folder


def check(format_: str, *options: str) -> Result:
    arguments = ["check", "schema", "--against", "HEAD", "--format", format_, *options]
    result = CliRunner().invoke(main, arguments)
    assert (result.exit_code, result.stderr) == (1, "")
    return result


def test_github_lines_are_on_the_lines_of_the_new_files(project: Path) -> None:
    lines = check("github").stdout.splitlines()
    found = [
        re.match(r"::(\w+) file=(.*?),line=(\d+),col=(\d+),title=([\w-]+)::(.*)", line)
        for line in lines[:-1]
    ]
    places = [(m[1], m[2], int(m[3]), int(m[4]), m[5]) for m in found if m]
    assert places == [
        ("warning", "parts/engine/schema/jobs.yaml", 4, 11, "unused-import"),
        ("warning", "parts/engine/schema/types.yaml", 3, 3, "unused-type"),
        ("error", "parts/engine/generated/__init__.py", 1, 1, "stale-module"),
        ("error", "parts/engine/generated/jobs.py", 1, 1, "stale-module"),
        ("error", "parts/engine/generated/types.py", 1, 1, "stale-module"),
        ("error", "parts/engine/schema/jobs.yaml", 10, 12, "INT_CHANGED"),
        ("notice", "parts/engine/schema/jobs.yaml", 11, 34, "LIMIT_TIGHTENED"),
        ("notice", "parts/engine/schema/jobs.yaml", 12, 7, "FIELD_ADDED"),
        ("notice", "parts/engine/schema/types.yaml", 1, 8, "GROUP_ADDED"),
    ]
    root = project.parent.parent
    for _, path, line, column, rule in places[5:]:
        text = (root / path).read_text().splitlines()[line - 1]
        assert text[column - 1] not in " :", rule
    assert lines[-1] == "4 errors, 2 warnings, 2 notes, 1 waived"


def test_github_messages_areescaped(project: Path) -> None:
    waived = next(
        line for line in check("github").stdout.splitlines() if "LIMIT_" in line
    )
    message = waived.rpartition("::")[2]
    assert "waived until 2999-12-31: 100%25 sure: no text is longer, <yet>" in message
    assert "%0Awire: new readers of old messages fail" in message
    comma = "::error file=a%2Cb%3A%25,line"
    from msgen.codegen.report.formats import escaped

    assert f"::error file={escaped('a,b:%', property_=True)},line" == comma


def sarif_of(text: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(text)
    jsonschema.Draft4Validator.check_schema(SARIF)
    jsonschema.Draft4Validator(SARIF).validate(data)
    (run,) = data["runs"]
    for result in run["results"]:
        rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
        assert rule["id"] == result["ruleId"]
    return run  # type: ignore[no-any-return]


def test_sarif_is_as_published(project: Path) -> None:
    run = sarif_of(check("sarif").stdout)
    result = next(each for each in run["results"] if each["ruleId"] == "INT_CHANGED")
    location = result["locations"][0]["physicalLocation"]
    assert location["artifactLocation"] == {
        "uri": "parts/engine/schema/jobs.yaml",
        "uriBaseId": "%SRCROOT%",
    }
    assert location["region"] == {"startLine": 10, "startColumn": 12}
    assert result["level"] == "error"
    waived = [each for each in run["results"] if "suppressions" in each]
    assert [each["ruleId"] for each in waived] == ["LIMIT_TIGHTENED"]
    assert waived[0]["suppressions"][0]["justification"].startswith("100% sure")
    assert {each["ruleId"] for each in run["results"]} > {
        "stale-module",
        "unused-import",
    }


def test_a_result_keeps_its_fingerprint_when_its_line_moves(project: Path) -> None:
    def prints() -> dict[str, str]:
        run = sarif_of(check("sarif").stdout)
        return {
            each["ruleId"]: each["partialFingerprints"]["msgen/v1"]
            for each in run["results"]
            if each["ruleId"].isupper()
        }

    before = prints()
    path = project / "schema" / "jobs.yaml"
    path.write_text(f"# A comment.\n{path.read_text()}")
    assert prints() == before
    assert len(set(before.values())) == 4


@pytest.mark.parametrize("case", sorted(RULES.keys() - {"LAYOUT_CHANGED"}))
def test_sarif_of_every_rule_is_as_published(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version, files in cases("diff")[case].versions().items():
        write_files(tmp_path / version, files)
    monkeypatch.chdir(tmp_path)
    arguments = ["diff", "current", "--against", "./previous", "--format", "sarif"]
    run = sarif_of(CliRunner().invoke(main, arguments).stdout)
    assert case in {each["ruleId"] for each in run["results"]}


def test_json_has_every_part(project: Path) -> None:
    data = json.loads(check("json").stdout)
    assert set(data) == {
        "version",
        "comparisons",
        "waivers",
        "skipped",
        "lint",
        "stale",
        "summary",
    }
    assert data["summary"] == {"errors": 4, "warnings": 2, "notes": 2, "waived": 1}
    (comparison,) = data["comparisons"]
    assert comparison["rollout"] == "all at once: api, worker"
    assert comparison["groups"] == [
        {
            "group": "jobs",
            "receiver": "worker",
            "same_fingerprint": False,
            "new_reads_old": "refused",
            "old_reads_new": "refused",
            "rollout": "all at once: api, worker",
        }
    ]
    finding = comparison["findings"][0]
    assert finding == {
        "rule": "INT_CHANGED",
        "severity": "error",
        "subject": "jobs.Job.uid",
        "place": {"path": "schema/jobs.yaml", "line": 10, "column": 12},
        "old_place": {
            "path": "HEAD:parts/engine/schema/jobs.yaml",
            "line": 8,
            "column": 12,
        },
        "text": "field 'uid' of message 'Job' is 'u8', was 'int'",
        "old": "int",
        "new": "u8",
        "breaks": "wire",
        "new_reads_old": "refused",
        "old_reads_new": "refused",
        "groups": ["jobs"],
        "messages": ["jobs.Job"],
        "readers": ["worker"],
        "senders": ["api"],
        "rollout": "all at once: api, worker",
        "waived": None,
    }
    assert [each["kind"] for each in data["stale"]] == ["missing"] * 3
    assert [each["rule"] for each in data["lint"]] == ["unused-import", "unused-type"]


def test_markdown_is_tables_that_nothing_breaks_out_of(project: Path) -> None:
    lines = check("markdown").stdout.splitlines()
    assert lines[0] == "**msgen: 4 errors, 2 warnings, 2 notes, 1 waived**"
    assert "| jobs | refused | refused | all at once: api, worker |" in lines
    tables = [line for line in lines if line.startswith("|")]
    for line in tables:
        assert len(re.findall(r"(?<!\\)\|", line)) == 5, line
        assert re.sub(r"<br>", "", line).count("<") == 0
    (waived,) = [line for line in lines if line.startswith("| waived |")]
    assert "no text is longer, &lt;yet>" in waived
    assert "`parts/engine/schema/jobs.yaml:11`" in waived


def test_markdown_of_nothing(project: Path) -> None:
    write_schema(project / "schema", {"jobs.yaml": OLD})
    (project / "schema" / "types.yaml").unlink()
    (project / "schema" / "msgen.yaml").unlink()
    arguments = ["diff", "schema", "--against", "HEAD", "--format", "markdown"]
    text = CliRunner().invoke(main, arguments).stdout
    assert text.startswith("**msgen: 0 errors**\n") and "\nNo findings.\n" in text
    assert "schema of today" not in text


def test_a_version_that_is_not_there_is_told_in_every_format(
    project: Path, tmp_path: Path
) -> None:
    write_schema(project / "fresh", {"types.yaml": TYPES})
    for format_ in ("text", "json", "github", "sarif", "markdown"):
        arguments = ["diff", "fresh", "--against", "HEAD", "--allow-missing"]
        result = CliRunner().invoke(main, [*arguments, "--format", format_])
        assert result.exit_code == 0
        assert "has no schema folder" in result.stdout


def test_text_is_one_report_of_everything(project: Path) -> None:
    result = CliRunner().invoke(main, ["check", "schema", "--against", "HEAD"])
    assert result.exit_code == 1
    assert result.stdout == (
        "2 groups: 2 lint findings, 3 files out of date: 4 errors, 2 warnings, 2 notes, 1 waived\n"
    )
    lines = result.stderr.splitlines()
    assert lines[0].startswith(
        "schema/jobs.yaml:4:11: warning: group 'jobs' imports 'types'"
    )
    assert lines[2] == "missing: generated/__init__.py"
    assert lines[5] == "run 'msgen build schema' to bring them up to date"
    assert lines[6].startswith("against HEAD (")
    assert lines[-1] == "roll out: all at once: api, worker"


def test_paths_outside_of_a_repository_are_those_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_schema(tmp_path / "deep" / "schema", {"types.yaml": TYPES})
    write_schema(tmp_path / "elsewhere" / "schema", {"types.yaml": TYPES})
    monkeypatch.chdir(tmp_path / "deep")
    for folder, shown in (
        ("schema", "schema/types.yaml"),
        ("../elsewhere/schema", "../elsewhere/schema/types.yaml"),
    ):
        result = CliRunner().invoke(main, ["check", folder, "--format", "github"])
        assert (
            f"::warning file={shown},line=3,col=3,title=unused-type::" in result.stdout
        )

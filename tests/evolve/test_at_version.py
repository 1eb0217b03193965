"""`build --at-version`: modules as they were at an older version, from today's schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from building import built_in_memory, write_schema
from click.testing import CliRunner, Result
from edits import load, random_files
from msgen.codegen import generate
from msgen.codegen.cli.commands import main
from msgen.codegen.evolve.findings import diff
from msgen.codegen.history.versions import at_version
from msgen.codegen.schema.fingerprint import Fingerprints
from msgen.codegen.schema.loader import load_files
from msgen.codegen.schema.rule import ERROR
from schemas import RandomSource

FIRST = """
group: jobs
receiver: worker
batch: {name: BatchJobsMsg, tag: 0}
messages:
  Job:
    tag: 1
    fields:
      uid: int
      options: Options
      next: 'list[Job | str]'
structs:
  Options:
    fields:
      depth: int
enums:
  Kind: {values: {small: 0, large: 1}, unknown: small}
"""
THIRD = """
group: jobs
receiver: worker
version: 3
batch: {name: BatchJobsMsg, tag: 0}
messages:
  Job:
    tag: 1
    fields:
      uid: int
      options: Options
      next: 'list[Job | str | Stop]'
      urgency: {type: int, default: 5, since: 2}
      more: {type: Options, default: {depth: 1, width: 2.0}, since: 2}
      kind: {type: Kind, default: large, since: 3}
  Stop: {tag: 2, since: 2}
  Wait: {tag: 3, since: 3}
structs:
  Options:
    fields:
      depth: int
      width: {type: float, default: 0.5, since: 3}
enums:
  Kind: {values: {small: 0, large: 1, huge: {value: 2, since: 2}}, unknown: small}
"""


def schema_of(text: str) -> Any:
    return load_files("schema", "schema", {"jobs.yaml": text.encode()})


def msgen(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def test_the_first_version_is_the_module_of_the_first_schema() -> None:
    past = at_version(schema_of(THIRD), {"jobs": 1})
    assert generate(past) == generate(schema_of(FIRST))


def test_a_version_in_between_has_what_was_there_then() -> None:
    with built_in_memory(at_version(schema_of(THIRD), {"jobs": 2})) as modules:
        jobs = modules.module("jobs")
        job = jobs.Job(uid=1, options=jobs.Options(depth=2), next=[jobs.Stop()])
        assert (job.urgency, job.more) == (5, jobs.Options(depth=1))
        assert [each.name for each in jobs.Kind] == ["small", "large", "huge"]
        assert not hasattr(jobs, "Wait")
        assert not hasattr(job, "kind")
        assert jobs.CODEC.version == 2


def test_what_an_older_field_cannot_be_without_is_kept() -> None:
    text = """
group: jobs
receiver: worker
version: 2
messages:
  Job:
    tag: 1
    fields:
      kind: {type: Kind, default: huge}
      stops: list[Stop]
      either: 'list[Stop | Wait]'
  Stop: {tag: 2, since: 2}
  Wait: {tag: 3, since: 2}
  Gone: {tag: 4, since: 2}
enums:
  Kind: {values: {small: 0, huge: {value: 2, since: 2}, other: {value: 3, since: 2}}}
  Later: {values: {only: {value: 1, since: 2}}}
"""
    with built_in_memory(at_version(schema_of(text), {"jobs": 1})) as modules:
        jobs = modules.module("jobs")
        assert [each.name for each in jobs.Kind] == ["small", "huge"]
        assert [each.name for each in jobs.Later] == ["only"]
        assert hasattr(jobs, "Stop") and not hasattr(jobs, "Gone")


@pytest.mark.parametrize("seed", range(30))
def test_any_schema_goes_back_to_a_first_version_that_today_still_reads(
    seed: int,
) -> None:
    schema = load(random_files(RandomSource(seed)))
    past = at_version(schema, {"main": 1, "lib": 1})
    with built_in_memory(past):
        pass
    main_of = [Fingerprints(each).of(each.groups["main"]) for each in (past, schema)]
    assert main_of[0] == main_of[1]
    found = diff(past, schema)
    wrong = [each for each in found.findings if each.severity == ERROR]
    assert {each.change.rule.id for each in wrong} <= {"ENUM_VALUE_ADDED"}


def test_the_command_line_wants_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_schema(tmp_path / "schema", {"jobs.yaml": THIRD})
    monkeypatch.chdir(tmp_path)
    assert msgen("build", "schema", "--at-version", "1").stderr == (
        "error: --at-version needs --out, so that the modules of today are not overwritten\n"
    )
    done = msgen("build", "schema", "--at-version", "1", "--out", "v1")
    assert done.stdout == "1 group, 2 messages: 2 written, 0 unchanged, 0 removed\n"
    assert "version=1," in (tmp_path / "v1" / "jobs.py").read_text()
    assert not (tmp_path / "generated").exists()


@pytest.mark.parametrize(
    ("version", "text"),
    [
        ("0", "'0' is no version; write a number from 1, or GROUP=NUMBER"),
        ("new", "'new' is no version; write a number from 1, or GROUP=NUMBER"),
        ("4", "version 4 is not there yet: the newest group is at version 3"),
        ("jobs=4", "version 4 is not there yet: group 'jobs' is at version 3"),
        ("x=1", "there is no group 'x'; the groups are jobs"),
    ],
)
def test_a_version_that_is_none_is_an_error(
    tmp_path: Path, version: str, text: str
) -> None:
    folder = write_schema(tmp_path / "schema", {"jobs.yaml": THIRD})
    done = msgen(
        "build", str(folder), "--at-version", version, "--out", str(tmp_path / "out")
    )
    assert done.exit_code == 2
    assert done.stderr == f"error: --at-version: {text}\n"


def test_groups_go_back_one_by_one(tmp_path: Path) -> None:
    files = {
        name: json.dumps(
            {
                "group": name,
                "receiver": "r",
                "version": 2,
                "messages": {
                    "A" + name: {"tag": 1},
                    "B" + name: {"tag": 2, "since": 2},
                },
            }
        )
        for name in ("one", "two")
    }
    folder = write_schema(
        tmp_path / "schema", {f"{name}.yaml": text for name, text in files.items()}
    )
    out = tmp_path / "out"
    done = msgen("build", str(folder), "--at-version", "one=1", "--out", str(out))
    assert done.stdout.startswith("2 groups, 3 messages")

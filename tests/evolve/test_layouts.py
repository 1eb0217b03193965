"""Released layouts, and the SchemaMismatch that says how a peer of one of them differs."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from building import built, write_schema
from click.testing import CliRunner, Result
from msgen.codegen import load_schema
from msgen.codegen.cli.commands import main
from msgen.codegen.history.layouts import LONGEST, Layouts, load_layouts
from msgen.codegen.schema.fingerprint import Fingerprints
from msgen.codegen.schema.loader import load_files
from msgen.runtime import SchemaMismatch

JOBS = """
group: jobs
receiver: worker
batch: {name: BatchJobsMsg, tag: 0}
messages:
  Job:
    tag: 1
    fields:
      uid: int
      options: 'list[Options?]'
      kind: Kind
      node: Node?
      pair: 'tuple[int, str]'
      ids: 'tensor[int32, n]'
      either: 'int | str'
  Stop: {tag: 2}
structs:
  Options:
    fields:
      depth: int
  Node:
    fields:
      next: Node?
      names: 'dict[str, Options]'
enums:
  Kind: {values: {small: 0, large: 1}}
"""


def msgen(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


@pytest.fixture
def build(tmp_path: Path) -> Iterator[Any]:
    """Builds a schema in one folder, with the layouts that were recorded there."""
    with ExitStack() as stack:
        folder = tmp_path / "schema"

        def make(text: str, label: str = "") -> Any:
            write_schema(folder, {"jobs.yaml": text})
            module = stack.enter_context(built(tmp_path, folder)).module("jobs")
            if label:
                assert msgen("record", folder, label).exit_code == 0
            return module

        yield make


def test_a_mismatch_with_a_known_layout_says_the_first_difference(build: Any) -> None:
    old = build(JOBS, "v1.0")
    new = build(JOBS.replace("depth: int", "depth: u8"))
    with pytest.raises(SchemaMismatch) as caught:
        new.decode(old.encode(old.Stop()))
    error = caught.value
    assert str(error) == (
        "jobs: the peer's schema differs: it is that of v1.0, fingerprint "
        f"{old.CODEC.fingerprint}, this build's is {new.CODEC.fingerprint}; first difference: "
        "Job.options.depth is i64 there, u8 here; build both from one schema"
    )
    assert (error.ours, error.theirs) == (new.CODEC.fingerprint, old.CODEC.fingerprint)
    assert error.difference == "Job.options.depth is i64 there, u8 here"
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.difference) == (str(error), error.difference)


def test_a_mismatch_with_another_layout_says_what_the_header_has(build: Any) -> None:
    old = build(JOBS, "v1.0")
    other = build(JOBS.replace("uid: int", "uid: u8"))
    with pytest.raises(SchemaMismatch) as caught:
        old.decode(other.encode(other.Stop()))
    assert caught.value.difference == ""
    assert other.CODEC.fingerprint.startswith(caught.value.theirs[:5])


def test_a_module_of_the_released_layout_carries_nothing(build: Any) -> None:
    build(JOBS, "v1.0")
    assert build(JOBS).CODEC._table_codec.former == ()


def difference(before: str, after: str, text: str = JOBS) -> str:
    assert before in text
    schemas = [
        load_files("schema", "schema", {"jobs.yaml": each.encode()})
        for each in (text, text.replace(before, after))
    ]
    layouts, _ = Layouts().with_release(schemas[0], "v1")
    group = schemas[1].groups["jobs"]
    (former,) = layouts.former(group, Fingerprints(schemas[1]))
    return former.difference


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ("uid: int", "uid: u8", "Job.uid is i64 there, u8 here"),
        ("uid: int", "uid: int?", "Job.uid is i64 there, i64? here"),
        ("uid: int", "ident: int", "slot 1 of Job is uid there, ident here"),
        ("  Stop: {tag: 2}\n", "", "Stop (tag 2) is there, not here"),
        ("Stop: {tag: 2}", "Stop: {tag: 2}\n  Go: {tag: 3}", "Go (tag 3) is here, not there"),
        ("  Stop:", "  Halt:", "tag 2 is Stop there, Halt here"),
        ("      either: 'int | str'\n", "", "Job.either is there, not here"),
        ("depth: int\n", "depth: int\n      width: int\n", "Job.options.width is here, not there"),
        ("int | str'", "int | bool'", "Job.either is i64 | str there, bool | i64 here"),
        ("[int, str]", "[int, int]", "Job.pair is str there, i64 here"),
        ("[int, str]", "[int]", "Job.pair is tuple[i64, str] there, tuple[i64] here"),
        ("int32, n", "int32, n, 4", "Job.ids is tensor[int32, _] there, tensor[int32, _, 4] here"),
        ("'tensor[int32, n]'", "bytes", "Job.ids is tensor[int32, _] there, bytes here"),
        (
            "large: 1",
            "large: 2",
            "Job.kind is enum {small: 0, large: 1} there, enum {small: 0, large: 2} here",
        ),
        ("dict[str, Options]", "dict[int, Options]", "Job.node.names is str there, i64 here"),
        ("kind: Kind", "kind: Options", "Job.kind is enum {small: 0, large: 1} there, a struct here"),
        (
            "batch: {name: BatchJobsMsg, tag: 0}",
            "",
            "BatchJobsMsg (tag 0) is there, not here",
        ),
    ],
)  # fmt: skip
def test_the_first_difference(before: str, after: str, text: str) -> None:
    assert difference(before, after) == text


def test_a_difference_inside_a_recursive_struct_is_found() -> None:
    text = JOBS.replace("'list[Options?]'", "int").replace(
        "dict[str, Options]", "dict[str, int]"
    )
    assert difference("dict[str, int]", "dict[str, u8]", text) == (
        "Job.node.names is i64 there, u8 here"
    )


def test_a_batch_that_became_a_message_is_told() -> None:
    before = "batch: {name: BatchJobsMsg, tag: 0}\nmessages:\n"
    after = "messages:\n  BatchJobsMsg: {tag: 0}\n"
    assert difference(before, after) == "BatchJobsMsg is a batch on one side only"


def test_a_long_difference_is_cut() -> None:
    values = ", ".join(f"member_{number}: {number}" for number in range(20))
    text = JOBS.replace("small: 0, large: 1", values)
    told = difference("member_0: 0", "member_0: 99", text)
    assert len(told) == LONGEST and told.endswith("...")


def test_recording_keeps_each_layout_once(tmp_path: Path) -> None:
    folder = write_schema(tmp_path / "schema", {"jobs.yaml": JOBS})
    first = msgen("record", folder, "v1.0")
    path = (folder / "layouts.json").as_posix()
    assert first.stdout == f"{path}: recorded jobs\n"
    text = (folder / "layouts.json").read_text()
    again = msgen("record", folder, "v1.1")
    assert again.stdout == f"{path}: recorded nothing: every layout of today is known\n"
    assert (folder / "layouts.json").read_text() == text
    layouts = load_layouts(folder)
    assert [each["label"] for each in layouts.by_group["jobs"]] == ["v1.0"]
    assert layouts.text() == text


def test_groups_without_messages_have_no_layout(tmp_path: Path) -> None:
    text = "group: types\nstructs:\n  A: {fields: {x: int}}\n"
    folder = write_schema(tmp_path / "schema", {"types.yaml": text})
    assert "recorded nothing" in msgen("record", folder, "v1.0").stdout
    assert not (folder / "layouts.json").exists()


def test_modules_are_out_of_date_after_a_record_of_another_layout(
    tmp_path: Path,
) -> None:
    folder = write_schema(tmp_path / "schema", {"jobs.yaml": JOBS})
    msgen("record", folder, "v1.0")
    write_schema(folder, {"jobs.yaml": JOBS.replace("uid: int", "uid: u8")})
    assert msgen("build", folder).exit_code == 0
    assert msgen("check", folder).exit_code == 0
    (folder / "layouts.json").unlink()
    assert msgen("check", folder).exit_code == 1


@pytest.mark.parametrize("label", ["", "two\nlines", "x" * 41])
def test_a_label_has_to_fit_into_an_error(tmp_path: Path, label: str) -> None:
    folder = write_schema(tmp_path / "schema", {"jobs.yaml": JOBS})
    done = msgen("record", folder, label)
    assert done.exit_code == 2
    assert "the label is empty, too long or not printable" in done.stderr


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    folder = write_schema(tmp_path / "schema", {"jobs.yaml": JOBS})
    (folder / "layouts.json").symlink_to(tmp_path / "nowhere" / "layouts.json")
    done = msgen("record", folder, "v1.0")
    assert (done.exit_code, done.stderr) == (
        2,
        f"error: {(folder / 'layouts.json').as_posix()} cannot be written: "
        "No such file or directory\n",
    )


def test_the_layout_in_the_file_has_the_fingerprint_beside_it(tmp_path: Path) -> None:
    folder = write_schema(tmp_path / "schema", {"jobs.yaml": JOBS})
    msgen("record", folder, "v1.0")
    schema = load_schema(folder)
    (layout,) = load_layouts(folder).by_group["jobs"]
    assert layout["fingerprint"] == Fingerprints(schema).of(schema.groups["jobs"])


def test_a_field_may_be_called_like_a_kind_of_type(tmp_path: Path) -> None:
    fields = "".join(
        f"      {name}: u8\n" for name in ("struct", "message", "enum", "tensor")
    )
    text = JOBS.replace("      uid: int\n", fields)
    folder = write_schema(tmp_path / "schema", {"jobs.yaml": text})
    assert msgen("record", folder, "v1.0").stdout.endswith(": recorded jobs\n")
    told = difference("struct: u8", "struct: u16", text)
    assert told == "Job.struct is u8 there, u16 here"

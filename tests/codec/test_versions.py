"""Two builds of one group: what an older and a newer one understand of each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from building import built, write_schema
from msgen.runtime import DecodeError, SchemaMismatch, UnknownMessage
from msgen.runtime.codec import wire

OLD = """
group: jobs
receiver: worker
batch: {name: BatchJobsMsg, tag: 0}
messages:
  Job:
    tag: 1
    fields:
      uid: int
      note: {type: str, default: none}
      options: Options
structs:
  Options:
    fields:
      depth: int
enums:
  Kind: {values: {small: 0, large: 1}, unknown: small}
"""
NEW = """
group: jobs
receiver: worker
version: 3
batch: {name: BatchJobsMsg, tag: 0}
messages:
  Job:
    tag: 1
    doc: Docs, defaults and limits are not on the wire.
    fields:
      uid: int
      note: {type: str, default: nothing, max_len: 50}
      options: Options
      urgency: {type: int, default: 5, since: 2}
      tags: {type: "list[str]", default: [new], since: 2}
      hint: {type: "int?", default: 7, since: 3}
      kind: {type: Kind, default: large, since: 3}
      more: {type: Options, default: {depth: 1}, since: 3}
  Stop: {tag: 2, since: 2}
structs:
  Options:
    fields:
      depth: int
      width: {type: float, default: 0.5, since: 2}
enums:
  Kind: {values: {small: 0, large: 1, huge: {value: 2, since: 2}}, unknown: small}
"""


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Builds a version of the group and returns its module."""
    with ExitStack() as stack:

        def make(text: str) -> Any:
            folder: Path = tmp_path_factory.mktemp("version")
            schema_dir = write_schema(folder / "schema", {"jobs.yaml": text})
            return stack.enter_context(built(folder, schema_dir)).module("jobs")

        yield make


@pytest.fixture(scope="module")
def old(build: Any) -> Any:
    return build(OLD)


@pytest.fixture(scope="module")
def new(build: Any) -> Any:
    return build(NEW)


def test_additions_keep_the_fingerprint(old: Any, new: Any) -> None:
    assert old.CODEC.fingerprint == new.CODEC.fingerprint
    assert (old.CODEC.version, new.CODEC.version) == (1, 3)


def test_a_newer_reader_fills_in_what_an_older_writer_lacks(old: Any, new: Any) -> None:
    frame = old.encode(old.Job(uid=1, note="x", options=old.Options(depth=2)))
    job = new.decode(frame)
    assert job == new.Job(
        uid=1, note="x", options=new.Options(depth=2, width=0.5), urgency=5,
        tags=["new"], hint=7, kind=new.Kind.large, more=new.Options(depth=1),
    )  # fmt: skip
    job.tags.append("mine")
    assert new.decode(frame).tags == ["new"]


def test_an_older_reader_ignores_what_a_newer_writer_adds(old: Any, new: Any) -> None:
    job = new.Job(uid=1, note="x", options=new.Options(depth=2, width=9.0), hint=None)
    assert old.decode(new.encode(job)) == old.Job(
        uid=1, note="x", options=old.Options(depth=2)
    )
    batch = new.BatchJobsMsg([job])
    assert len(old.decode(new.encode(batch)).data) == 1


def test_null_is_not_the_default_where_null_is_a_value(new: Any) -> None:
    job = new.Job(uid=1, options=new.Options(depth=2), hint=None)
    assert new.decode(new.encode(job)).hint is None


def test_nil_means_the_default_where_it_is_no_value(new: Any) -> None:
    slots = wire.unpack(
        new.encode(new.Job(uid=1, note="x", options=new.Options(depth=2)))
    )
    slots[2] = slots[4] = slots[7] = None
    job = new.decode(wire.pack(slots))
    assert (job.note, job.urgency, job.kind) == ("nothing", 5, new.Kind.large)
    slots[1] = None
    with pytest.raises(DecodeError, match=r"Job\.uid: expected int \(i64\), got None"):
        new.decode(wire.pack(slots))


def test_a_missing_slot_that_was_there_from_the_start_is_an_error(old: Any) -> None:
    slots = wire.unpack(old.encode(old.Job(uid=1, options=old.Options(depth=2))))
    with pytest.raises(DecodeError) as caught:
        old.decode(wire.pack(slots[:3]))
    assert (
        caught.value.reason == "expected at least 3 slots, got 2; 'options' is missing"
    )


def test_a_new_message_is_unknown_to_an_older_reader(old: Any, new: Any) -> None:
    with pytest.raises(UnknownMessage, match="no message with tag 2; a newer peer"):
        old.decode(new.encode(new.Stop()))
    with pytest.raises(DecodeError, match=r"data\[0\]"):
        old.decode(new.encode(new.BatchJobsMsg([new.Stop()])))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("uid: int", "uid: u64"),
        ("uid: int", "uid: int?"),
        ("uid: int", "ident: int"),
        ("tag: 1", "tag: 3"),
        ("  Job:", "  Task:"),
        ("depth: int", "depth: float"),
        ("small: 0", "small: 5"),
        ("small: 0", "tiny: 0"),
        ("uid: int\n", "uid: int\n      extra: int\n"),
        (", large: 1", ""),
        ("batch: {name: BatchJobsMsg, tag: 0}", ""),
        ("batch: {name: BatchJobsMsg, tag: 0}", "batch: {name: BatchJobsMsg, tag: 9}"),
    ],
)
def test_whatever_changes_the_wire_changes_the_fingerprint(
    build: Any, old: Any, before: str, after: str
) -> None:
    # The enum counts only where a field of the first version has it.
    with_kind = OLD.replace("uid: int\n", "uid: int\n      kind: Kind\n", 1)
    assert before in with_kind
    text = with_kind.replace(before, after).replace("unknown: small", "")
    first, second = build(with_kind), build(text)
    assert first.CODEC.fingerprint != second.CODEC.fingerprint
    if hasattr(first, "Job"):
        job = first.Job(uid=1, kind=first.Kind(0), options=first.Options(depth=1))
        with pytest.raises(SchemaMismatch):
            second.decode(first.encode(job))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("uid: int", "uid: {type: i64, doc: The number., deprecated: true}"),
        ("uid: int", "number: {type: int, was: uid}"),
        ("  Job:\n    tag: 1", "  Task:\n    tag: 1\n    was: Job"),
        ("note: {type: str, default: none}", "note: {type: str, default: other}"),
        (
            "note: {type: str, default: none}",
            "note: {type: str, removed: true, default: x}",
        ),
        ("Options", "Settings"),
        ("receiver: worker", "receiver: elsewhere\nsenders: [a, b]\ndoc: Text."),
        ("unknown: small", "unknown: large"),
        ("depth: int", "depth: {type: int, default: 3}"),
    ],
)
def test_whatever_the_wire_does_not_show_keeps_the_fingerprint(
    build: Any, old: Any, before: str, after: str
) -> None:
    assert before in OLD
    assert build(OLD.replace(before, after)).CODEC.fingerprint == old.CODEC.fingerprint


def test_a_removed_message_keeps_the_fingerprint_and_its_tag(build: Any) -> None:
    text = OLD.replace(
        "structs:", "  Old:\n    tag: 5\n    fields: {x: int}\nstructs:", 1
    )
    before = build(text)
    after = build(text.replace("tag: 5", "tag: 5\n    removed: true"))
    assert before.CODEC.fingerprint == after.CODEC.fingerprint
    assert not hasattr(after, "Old")
    with pytest.raises(UnknownMessage, match="message 'Old' \\(tag 5\\) was removed"):
        after.decode(before.encode(before.Old(x=1)))


def test_a_removed_field_is_written_as_nil_and_not_read(build: Any, old: Any) -> None:
    after = build(
        OLD.replace(
            "note: {type: str, default: none}",
            "note: {type: str, default: none, removed: true}",
        )
    )
    job = after.Job(uid=1, options=after.Options(depth=2))
    assert not hasattr(job, "note")
    assert old.decode(after.encode(job)).note == "none"
    sent = old.encode(old.Job(uid=1, note="x", options=old.Options(depth=2)))
    assert after.decode(sent) == job

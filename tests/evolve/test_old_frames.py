"""Frames that released versions wrote stay readable.

`vectors/frames/<schema>/<version>/` holds a version's schema and frames that its build wrote. The
last version of `engine` is the schema of this repository; `evolving` has one of every change that
keeps a fingerprint. MSGEN_UPDATE_GOLDEN=1 writes the frames of a version that has none; those that
are there are never written again.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from building import Built, built_in_memory
from msgen.codegen import load_schema
from msgen.codegen.evolve.findings import diff
from msgen.codegen.schema import model
from msgen.codegen.schema.fingerprint import Fingerprints
from msgen.codegen.schema.rule import ERROR
from msgen.runtime import DecodeError, UnknownMessage
from msgen.runtime.codec import wire
from random_values import RandomValues
from readings import NoValue, expected, tree_of

ROOT = Path(__file__).parents[2]
FRAMES = Path(__file__).parents[1] / "vectors" / "frames"
UPDATE = os.environ.get("MSGEN_UPDATE_GOLDEN") == "1"
VERSIONS = sorted(FRAMES.glob("*/v*"))
_EACH = 4


def newest_of(name: str) -> Path:
    if name == "engine":
        return ROOT / "schema"
    versions = (FRAMES / name).glob("v*")
    return max(versions, key=lambda path: int(path.name[1:])) / "schema"


@pytest.fixture(scope="module")
def build() -> Iterator[Any]:
    """Builds a schema folder once."""
    made: dict[Path, Built] = {}
    with ExitStack() as stack:

        def make(folder: Path) -> Built:
            if folder not in made:
                made[folder] = stack.enter_context(built_in_memory(load_schema(folder)))
            return made[folder]

        yield make


def frames_of(version: Path, modules: Built) -> list[dict[str, Any]]:
    path = version / "frames.json"
    if UPDATE and not path.exists():
        rows = [
            json.dumps(each)
            for group in modules.schema.groups.values()
            for message in group.live_messages
            for each in write(modules, group.name, message)
        ]
        path.write_text("[\n" + ",\n".join(rows) + "\n]\n", encoding="utf-8")
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def write(
    modules: Built, group: str, message: model.Message
) -> Iterator[dict[str, Any]]:
    values = RandomValues(modules, random.Random(f"{group}.{message.name}"))
    for number in range(_EACH if message.fields else 1):
        codec = modules.module(group).CODEC
        msg = values.record(message)
        frames = codec.encode_frames(msg, threshold=8 if number % 2 else 1 << 16)
        yield {
            "group": group,
            "message": message.name,
            "frames": [bytes(each).hex() for each in frames],
        }


def label_of(version: Path) -> str:
    return version.relative_to(FRAMES).as_posix()


@pytest.mark.parametrize("version", VERSIONS, ids=label_of)
def test_old_frames_are_read_as_they_were_meant(version: Path, build: Any) -> None:
    old, new = build(version / "schema"), build(newest_of(version.parent.name))
    read = 0
    for each in frames_of(version, old):
        frames = [bytes.fromhex(frame) for frame in each["frames"]]
        theirs = old.schema.groups[each["group"]]
        message = next(m for m in theirs.messages if m.name == each["message"])
        sent = old.module(each["group"]).decode_frames(frames)
        mine = next(
            m
            for m in new.schema.groups[each["group"]].messages
            if m.tag == wire.unpack(frames[0])[0] & 0xFF
        )
        decode = new.module(each["group"]).decode_frames
        if mine.removed:
            with pytest.raises(UnknownMessage, match="was removed"):
                decode(frames)
            continue
        tree = tree_of(old, message.type, sent)
        try:
            wanted = expected(old.schema, new.schema, tree, mine.type)
        except NoValue:  # a batch with a removed message in it
            with pytest.raises(DecodeError, match="expected a tag of"):
                decode(frames)
            continue
        assert tree_of(new, mine.type, decode(frames)) == wanted
        read += 1
    assert read >= _EACH


@pytest.mark.parametrize("version", VERSIONS, ids=label_of)
def test_a_version_still_writes_the_frames_it_wrote(version: Path, build: Any) -> None:
    modules = build(version / "schema")
    for each in frames_of(version, modules):
        frames = [bytes.fromhex(frame) for frame in each["frames"]]
        codec = modules.module(each["group"]).CODEC
        msg = codec.decode_frames(frames)
        assert codec.encode(codec.decode(codec.encode(msg))) == codec.encode(msg)
        if len(frames) == 1:
            assert codec.encode(msg) == frames[0]


@pytest.mark.parametrize("version", VERSIONS, ids=label_of)
def test_no_version_breaks_an_older_one(version: Path) -> None:
    old = load_schema(version / "schema")
    new = load_schema(newest_of(version.parent.name))
    found = diff(old, new)
    assert [each for each in found.findings if each.severity == ERROR] == []
    assert all(each.same_fingerprint for each in found.verdicts)
    for name, group in old.groups.items():
        if group.messages:
            prints = [Fingerprints(each).of(each.groups[name]) for each in (old, new)]
            assert prints[0] == prints[1]


def test_the_newest_version_of_the_engine_is_kept(build: Any) -> None:
    """A schema that changed adds a folder here when it is released."""
    newest = sorted((FRAMES / "engine").iterdir())[-1] / "schema"
    kept, today = load_schema(newest), load_schema(ROOT / "schema")
    for name, group in today.groups.items():
        assert Fingerprints(kept).of(kept.groups[name]) == Fingerprints(today).of(group)

"""What `diff` says and what the bytes do: random schemas, random edits, real modules of both sides.

Where diff calls a direction of a message ok, every message that one version writes is read by the
other with the right values, by the generated functions and the table codec, whole and in
frames. Where it says refused, the fingerprints differ, and the other way round.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import pytest
from building import Built, built_in_memory
from edits import edited, load, random_files
from msgen.codegen.evolve import OK, REFUSED, Diff
from msgen.codegen.evolve.findings import diff
from msgen.codegen.history.layouts import NO_DIFFERENCE, Layouts
from msgen.codegen.schema import model
from msgen.codegen.schema.fingerprint import Fingerprints
from msgen.runtime import DecodeError, EncodeError, SchemaMismatch
from msgen.runtime.codec import wire
from msgen.runtime.codec.frames import FrameReader
from msgen.runtime.codec.table_codec import TableDecoder
from random_values import RandomValues
from readings import NoValue, expected, tree_of
from schemas import RandomSource
from sizes import size

PAIRS = size("MSGEN_DIFF_PAIRS", 300, 6_000)
"""Pairs of versions tried; a long run asks for more."""
FIRST_SEED = int(os.environ.get("MSGEN_DIFF_SEED", "0"))
VERSIONS = 8
"""Versions of one schema: a first one and edits of it, each compared with each."""
CHUNKS = 8
_PER_FAMILY = VERSIONS * (VERSIONS - 1) // 2
_MESSAGES = 3
"""Values tried for each message."""


@dataclass
class Tally:
    """What was checked, and which breaks were seen to be real."""

    counts: Counter[str] = field(default_factory=Counter)
    claimed: Counter[str] = field(default_factory=Counter)
    confirmed: Counter[str] = field(default_factory=Counter)


def families() -> range:
    count = -(-PAIRS // _PER_FAMILY)
    return range(FIRST_SEED, FIRST_SEED + count)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_diff_and_the_bytes_agree(chunk: int) -> None:
    tally = Tally()
    for seed in list(families())[chunk::CHUNKS]:
        check_family(seed, tally)
    print(dict(sorted(tally.counts.items())))
    for rule, count in sorted(tally.claimed.items()):
        print(f"{rule}: {count} breaks told, {tally.confirmed[rule]} seen")
    if tally.counts["pairs"] >= 100:
        # A checker that calls everything broken, or nothing, would agree with any bytes.
        assert tally.counts["read as they should"] > tally.counts["pairs"]
        assert tally.counts["broken"] > 0
        assert tally.counts["confirmed"] > tally.counts["broken"] // 4


def check_family(seed: int, tally: Tally) -> None:
    """Make versions of one schema, build each once, and compare each with each."""
    source = RandomSource(seed)
    first = random_files(source)
    versions = [(first, load(first), ["nothing"])]
    versions += [edited(first, source) for _ in range(VERSIONS - 1)]
    with ExitStack() as stack:
        modules = [
            stack.enter_context(built_in_memory(schema)) for _, schema, _ in versions
        ]
        for one, two in combinations(range(VERSIONS), 2):
            label = f"seed {seed}: {versions[one][2]} to {versions[two][2]}"
            check_pair(modules[one], modules[two], label, random.Random(seed), tally)


def check_pair(
    old: Built, new: Built, label: str, choose: random.Random, tally: Tally
) -> None:
    tally.counts["pairs"] += 1
    found = diff(old.schema, new.schema)
    for verdict in found.verdicts:
        group = old.schema.groups.get(verdict.group)
        if group is None or not (
            group.live_messages and _has_codec(new, verdict.group)
        ):
            continue
        prints = [each.module(verdict.group).CODEC.fingerprint for each in (old, new)]
        assert verdict.same_fingerprint == (prints[0] == prints[1]), label
        told = [
            each.change.rule.id
            for each in found.findings
            if REFUSED in (each.new_reads_old, each.old_reads_new)
            and verdict.group in each.groups
        ]
        assert bool(told) != verdict.same_fingerprint, (label, told)
        assert "LAYOUT_CHANGED" not in told, label
        if not verdict.same_fingerprint:
            assert first_difference(old, new, verdict.group), label
        tally.counts["same fingerprint" if verdict.same_fingerprint else "refused"] += 1
    for writer, reader, way in (
        (old, new, "new_reads_old"),
        (new, old, "old_reads_new"),
    ):
        check_direction(writer, reader, way, found, label, choose, tally)


def first_difference(old: Built, new: Built, group: str) -> bool:
    """Say whether a module of the new version could tell how the old layout differs."""
    layouts, _ = Layouts().with_release(old.schema, "old")
    (former,) = layouts.former(new.schema.groups[group], Fingerprints(new.schema))
    return former.difference not in ("", NO_DIFFERENCE)


def _has_codec(built: Built, group: str) -> bool:
    return group in built.schema.groups and bool(
        built.schema.groups[group].live_messages
    )


def check_direction(
    writer: Built,
    reader: Built,
    way: str,
    found: Diff,
    label: str,
    choose: random.Random,
    tally: Tally,
) -> None:
    names = "old_messages" if way == "new_reads_old" else "messages"
    values = RandomValues(writer, choose)
    refused = {each.group for each in found.verdicts if not each.same_fingerprint}
    for name, group in writer.schema.groups.items():
        if not group.live_messages or not _has_codec(reader, name):
            continue
        for message in group.live_messages:
            breaks = [
                each.change.rule.id
                for each in found.findings
                if getattr(each, way) != OK
                and f"{name}.{message.name}" in getattr(each, names)
            ]
            for _ in range(_MESSAGES):
                msg = values.record(message)
                try:
                    frame = writer.module(name).encode(msg)
                except EncodeError:
                    continue  # a tensor above its limit, or sizes that differ
                where = f"{label}: {name}.{message.name} {way}"
                if name in refused:
                    with pytest.raises(SchemaMismatch):
                        reader.module(name).decode(frame)
                    tally.counts["refused as told"] += 1
                elif not breaks:
                    check_reads(writer, reader, name, message, msg, where)
                    tally.counts["read as they should"] += 1
                else:
                    seen = not _reads(writer, reader, name, message, msg)
                    tally.counts["broken"] += 1
                    tally.counts["confirmed"] += seen
                    if len(set(breaks)) == 1:
                        tally.claimed[breaks[0]] += 1
                        tally.confirmed[breaks[0]] += seen


def check_reads(
    writer: Built,
    reader: Built,
    group: str,
    message: model.Message,
    msg: Any,
    where: str,
) -> None:
    """Check that a message is read with the right values by every way of reading."""
    tree = tree_of(writer, message.type, msg)
    module = reader.module(group)
    frame = writer.module(group).encode(msg)
    frames = writer.module(group).encode_frames(msg, threshold=1)
    tag = wire.unpack(frame)[0] & 0xFF
    target = next(
        each for each in reader.schema.groups[group].live_messages if each.tag == tag
    )
    cls = getattr(module, target.name)
    ways: dict[str, Callable[[], Any]] = {
        "generated": lambda: module._DECODERS[tag](_slots(frame, tag), None),
        "table": lambda: TableDecoder(module.CODEC.records, None).message(
            cls, _slots(frame, tag)
        ),
        "decode": lambda: module.decode(frame),
        "frames": lambda: module.decode_frames(frames),
        "table, frames": lambda: TableDecoder(
            module.CODEC.records, FrameReader(frames)
        ).message(cls, _slots(frames[0], tag)),
    }
    wanted = expected(writer.schema, reader.schema, tree, target.type)
    for engine, read in ways.items():
        try:
            got = tree_of(reader, target.type, read())
        except Exception as error:
            raise AssertionError(f"{where}, {engine}: {msg!r}") from error
        assert got == wanted, f"{where}, {engine}"


def _slots(frame: Any, tag: int) -> list[Any]:
    slots: list[Any] = wire.unpack(frame)
    slots[0] = tag
    return slots


def _reads(
    writer: Built, reader: Built, group: str, message: model.Message, msg: Any
) -> bool:
    try:
        check_reads(writer, reader, group, message, msg, "")
    except (AssertionError, DecodeError, NoValue, StopIteration):
        return False
    return True

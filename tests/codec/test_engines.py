"""The compiled engine and the Python one: the same bytes, the same messages, the same errors.

`MSGEN_ENGINE_CASES` and `MSGEN_ENGINE_SEED` make the long run.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from building import Built, built, built_in_memory
from edits import load, random_files
from engines import NATIVE, Outcome, outcome, spoil, strict_engine, subclassed
from golden import good_schema
from random_values import RandomValues
from schemas import RandomSource
from sizes import size
from test_mutations import MUTATIONS

CASES = size("MSGEN_ENGINE_CASES", 10_000, 300_000)
"""Calls compared in a run; the documented long run makes a million."""
SEED = int(os.environ.get("MSGEN_ENGINE_SEED", "0"))
CHUNKS = 4
_PER_SCHEMA = 600
_THRESHOLDS = (0, 1, 8, 4096)

pytestmark = pytest.mark.skipif(not NATIVE, reason="the compiled codec is not here")


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_engines_agree(chunk: int, tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    for number, modules in enumerate(schemas(chunk, tmp_path)):
        Comparison(modules, random.Random(SEED + number), counts).run(_PER_SCHEMA)
        if counts.total() * CHUNKS >= CASES:
            break
    print(dict(sorted(counts.items())))
    if counts.total() > 10_000:
        # Were nothing accepted, or nothing refused, they would agree on little.
        assert counts["valid"] > counts.total() // 20
        for kind in ("spoiled", "mutated", "mutated frames"):
            assert counts[f"{kind}: message"] > counts.total() // 200
            assert counts[f"{kind}: error"] > counts.total() // 50


def schemas(chunk: int, folder: Path) -> Iterator[Built]:
    """Yield one schema with all features and the engine's own, then random ones, for ever."""
    engine = Path(__file__).parents[2] / "schema"
    for fixed in (good_schema("everything", folder), engine):
        with built(folder / "packages", fixed) as modules:
            yield modules
    seed = 1000 * SEED + chunk
    while True:
        with built_in_memory(load(random_files(RandomSource(seed)))) as modules:
            yield modules
        seed += CHUNKS


class Comparison:
    """Compares the engines on one schema.

    A valid message must be served by the compiled engine alone: were it to leave them to Python,
    the two would agree as well.
    """

    def __init__(
        self, modules: Built, choose: random.Random, counts: Counter[str]
    ) -> None:
        self.modules = modules
        self.choose = choose
        self.counts = counts
        self.groups = [
            group
            for group in modules.schema.groups.values()
            if any(not each.removed for each in group.messages)
        ]
        self.codecs = {
            each.name: modules.module(each.name).CODEC for each in self.groups
        }
        self.strict = {
            name: strict_engine(codec) for name, codec in self.codecs.items()
        }

    def run(self, cases: int) -> None:
        end = self.counts.total() + cases
        while self.counts.total() < end:
            group = self.choose.choice(self.groups)
            record = self.choose.choice(group.live_messages)
            message = RandomValues(self.modules, self.choose).record(record)
            codec, strict = self.codecs[group.name], self.strict[group.name]
            if outcome(codec._python.encode, message).error is not None:
                # A symbol counts in every alternative of its rank, which chance does not mind.
                self.same("spoiled", codec, "encode", message)
                continue
            frame = self.check_valid(codec, strict, message)
            frames = self.check_frames(codec, strict, message)
            for _ in range(4):
                self.check_mutated(codec, frame)
            for _ in range(2):
                self.check_mutated_frames(codec, frames)
            self.same("subclass", codec, "encode", subclassed(message))
            for _ in range(2):
                spoil(message, self.choose)
                self.same("spoiled", codec, "encode", message)
            self.same_frames("spoiled", codec, message)

    def check_valid(self, codec: Any, strict: Any, message: Any) -> bytes:
        self.counts["valid"] += 2
        frame: bytes = codec._python.encode(message)
        assert strict.encode(message) == frame, message
        assert Outcome(strict.decode(frame)) == Outcome(codec._python.decode(frame))
        assert strict.encode(strict.decode(frame)) == frame
        return frame

    def check_frames(self, codec: Any, strict: Any, message: Any) -> list[Any]:
        self.counts["valid frames"] += 2
        threshold = self.choose.choice(_THRESHOLDS)
        frames = codec._python.encode_frames(message, threshold)
        assert Outcome(strict.encode_frames(message, threshold)) == Outcome(frames)
        either = strict.encode_for(threshold, message)
        assert Outcome([either] if type(either) is bytes else either) == Outcome(frames)
        assert Outcome(strict.decode_frames(frames)) == Outcome(
            codec._python.decode_frames(frames)
        )
        return [bytes(each) for each in frames]

    def check_mutated(self, codec: Any, frame: bytes) -> None:
        mutated = self.mutate(frame)
        self.same("mutated", codec, "decode", mutated)

    def check_mutated_frames(self, codec: Any, frames: list[Any]) -> None:
        mutated: list[Any] = list(frames)
        place = self.choose.randrange(len(mutated))
        how = self.choose.randrange(4)
        if how == 0:
            del mutated[place]
        elif how == 1:
            mutated.insert(place, self.choose.choice(frames))
        else:
            mutated[place] = self.mutate(mutated[place])
        self.same("mutated frames", codec, "decode_frames", mutated)

    def mutate(self, frame: bytes) -> bytes | bytearray | memoryview:
        mutated = bytearray(frame)
        for _ in range(self.choose.choice((1, 1, 1, 2, 4))):
            if mutated:
                self.choose.choice(MUTATIONS)(self.choose, mutated)
        return self.choose.choice((bytes, bytearray, memoryview))(bytes(mutated))

    def same(self, kind: str, codec: Any, call: str, argument: Any) -> None:
        native = outcome(getattr(codec, call), argument)
        python = outcome(getattr(codec._python, call), argument)
        self.count(kind, native)
        assert native == python, (kind, call, argument, native, python)

    def same_frames(self, kind: str, codec: Any, message: Any) -> None:
        threshold = self.choose.choice(_THRESHOLDS)
        native = outcome(codec.encode_frames, message, threshold)
        python = outcome(codec._python.encode_frames, message, threshold)
        self.count(kind, native)
        assert native == python, (kind, message, threshold, native, python)

    def count(self, kind: str, result: Outcome) -> None:
        self.counts[f"{kind}: {'message' if result.error is None else 'error'}"] += 1

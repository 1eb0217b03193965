"""Coverage-guided fuzzing of the compiled decoder, held against the Python one.

`fuzz/run.sh` builds the engine with clang's coverage and AddressSanitizer, and runs this. An input
is a message without its header, which the harness puts before it: a random header would be
refused before anything is read.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import atheris

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "tests/golden")]

import torch  # noqa: E402, F401
from building import built  # noqa: E402
from engines import alike, outcome  # noqa: E402
from golden import good_schema  # noqa: E402
from msgen.runtime import ENGINE  # noqa: E402
from random_values import RandomValues  # noqa: E402

SEEDS = 400
"""Valid messages that the corpus begins with."""


def split(codec: Any, frame: bytes) -> bytes:
    """Return the input that makes this frame: its tag, its number of slots, and the slots."""
    head = frame.index(b"\xce")
    count = frame[0] & 0x0F if head == 1 else int.from_bytes(frame[1:head], "big")
    return bytes([frame[head + 4], count]) + frame[head + 5 :]


def join(codec: Any, data: bytes) -> bytes:
    header = codec._table_codec.prefix | data[0]
    count = data[1]
    head = bytes([0x90 | count]) if count < 16 else bytes([0xDC, 0, count])
    return head + b"\xce" + header.to_bytes(4, "big") + data[2:]


def check(call: str, codec: Any, argument: Any) -> None:
    native = outcome(getattr(codec, call), argument)
    python = outcome(getattr(codec._python, call), argument)
    if native != python:
        raise AssertionError(f"{call} of {argument!r}: {native} and {python}")
    if native.error is None:
        frame = codec.encode(native.value)
        if frame != codec._python.encode(native.value) or not alike(
            codec.decode(frame), native.value
        ):
            raise AssertionError(f"{native.value!r} does not encode alike")


def main() -> None:
    if ENGINE != "native":
        sys.exit("the compiled codec is not here")
    with (
        tempfile.TemporaryDirectory() as folder,
        built(Path(folder), good_schema("everything", Path(folder))) as modules,
    ):
        codec = modules.module("everything").CODEC
        corpus = Path(sys.argv[-1])
        corpus.mkdir(parents=True, exist_ok=True)
        values = RandomValues(modules, random.Random(0))
        messages = modules.schema.groups["everything"].live_messages
        for number in range(SEEDS):
            frame = codec.encode(values.record(messages[number % len(messages)]))
            (corpus / f"seed-{number}").write_bytes(split(codec, frame))

        def fuzz(data: bytes) -> None:
            if len(data) < 3:
                return
            # The last byte says where the input is cut into frames, 0 for not at all.
            body, cut = data[:-1], data[-1]
            if cut % 4:
                check("decode", codec, join(codec, body))
                return
            pieces = [body[at : at + 1 + cut // 4] for at in range(2, len(body), 64)]
            check("decode_frames", codec, [join(codec, body), *pieces[:8]])

        atheris.Setup(sys.argv, fuzz)
        atheris.Fuzz()


if __name__ == "__main__":
    main()

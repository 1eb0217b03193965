"""Golden vectors: bytes and fingerprints that must never change without a decision.

`MSGEN_UPDATE_GOLDEN=1` writes them anew; the diff is then to be defended in review.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from building import Built, built
from golden import cases, good_schema
from msgen.codegen import load_schema
from msgen.codegen.schema.fingerprint import Fingerprints
from msgen.generated import backend, frontend, tokenizer
from msgen.generated.common import (
    EngineStats,
    Failure,
    FailureKind,
    FinishReason,
    SamplingParams,
)
from values import make_tensor, slots_of

ROOT = Path(__file__).parents[2]
VECTORS = Path(__file__).parents[1] / "vectors"
UPDATE = bool(os.environ.get("MSGEN_UPDATE_GOLDEN"))


def engine_messages() -> dict[str, tuple[str, Any]]:
    params = SamplingParams()
    ids = torch.tensor([1, 2, 3], dtype=torch.int32)
    user = backend.UserMsg(7, ids, params)
    turns = [{"role": "user", "content": "héllo"}]
    too_long = Failure(FailureKind.too_long, "shorten the messages")
    tuned = SamplingParams(0.7, 40, 0.95, True, 1 << 40)
    return {
        "user": ("backend", user),
        "user without tokens": ("backend", backend.UserMsg(-1, ids[:0], tuned)),
        "user with many tokens": (
            "backend",
            backend.UserMsg(1 << 62, torch.arange(300, dtype=torch.int32), params),
        ),
        "abort": ("backend", backend.AbortBackendMsg(-(1 << 63))),
        "exit": ("backend", backend.ExitMsg()),
        "batch": ("backend", backend.BatchBackendMsg([user, backend.ExitMsg()])),
        "empty batch": ("backend", backend.BatchBackendMsg([])),
        "tokenize text": ("tokenizer", tokenizer.TokenizeMsg(1, "hi", params)),
        "tokenize conversation": (
            "tokenizer",
            tokenizer.TokenizeMsg(200, turns, params),
        ),
        "detokenize": ("tokenizer", tokenizer.DetokenizeMsg(1, 2, True)),
        "reply": ("frontend", frontend.UserReply(1, "\U0001f600", False)),
        "last reply": (
            "frontend",
            frontend.UserReply(1, "", True, FinishReason.stop, 37, 8),
        ),
        "refusal": (
            "frontend",
            frontend.UserReply(1, "", True, FinishReason.error, failure=too_long),
        ),
        "finish": (
            "tokenizer",
            tokenizer.FinishMsg(1, FinishReason.length, 37, 300, None),
        ),
        "ping": ("tokenizer", tokenizer.PingMsg(9)),
        "ping for the ranks": ("backend", backend.PingBackendMsg(9)),
        "pong": ("tokenizer", tokenizer.PongMsg(9, EngineStats(*range(10)))),
    }


def everything_messages(modules: Built) -> dict[str, tuple[str, Any]]:
    everything = modules.module("everything")
    return {
        "tensors": (
            "everything",
            everything.Tensors(
                ids=make_tensor([2], "int32", 1),
                pos=make_tensor([2], "int64", 1),
                mask=make_tensor([2, 2], "bool", 1),
                scalar=make_tensor([], "float64", 1),
                fixed=make_tensor([2, 1], "bfloat16", 1),
                fixed1=make_tensor([4], "uint8", 0),
                anyd=make_tensor([2], "complex64", 1),
                anyr=make_tensor([1, 2, 1], "float32", 1),
                any2=make_tensor([2, 0], "float8_e5m2", 0),
                lst=[make_tensor([1], "float16", 1)],
                lim=make_tensor([3], "int8", 1),
                mp={"k": make_tensor([2], "float8_e4m3fn", 1)},
            ),
        )
    }


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    with built(tmp_path_factory.mktemp("engine"), ROOT / "schema") as modules:
        yield modules


def to_json(slot: Any) -> Any:
    if isinstance(slot, bytes):
        return {"bin": slot.hex()}
    if isinstance(slot, list):
        return [to_json(item) for item in slot]
    if isinstance(slot, dict):
        return {"map": [[to_json(key), to_json(item)] for key, item in slot.items()]}
    return slot


def from_json(slot: Any) -> Any:
    if isinstance(slot, list):
        return [from_json(item) for item in slot]
    if isinstance(slot, dict) and "bin" in slot:
        return bytes.fromhex(slot["bin"])
    if isinstance(slot, dict):
        return {from_json(key): from_json(item) for key, item in slot["map"]}
    return slot


def load(name: str, current: Any) -> Any:
    path = VECTORS / name
    if UPDATE:
        path.write_text(json.dumps(current, indent=1, ensure_ascii=False) + "\n")
    return json.loads(path.read_text())


def check_vectors(
    name: str, modules: Built, messages: dict[str, tuple[str, Any]]
) -> None:
    current = []
    for label, (group, msg) in messages.items():
        declared = next(
            each
            for each in modules.schema.groups[group].messages
            if each.name == type(msg).__name__
        )
        frame = modules.module(group).encode(rebuilt(modules, group, msg))
        header = int.from_bytes(frame[2:6], "big")
        slots = [header, *slots_of(modules, declared, rebuilt(modules, group, msg))[1:]]
        current.append(
            {
                "name": label,
                "group": group,
                "slots": to_json(slots),
                "frame": frame.hex(),
            }
        )
    vectors = load(name, current)
    assert vectors == current
    for vector in vectors:
        frame = bytes.fromhex(vector["frame"])
        module = modules.module(vector["group"])
        assert msgspec.msgpack.encode(from_json(vector["slots"])) == frame
        assert module.encode(module.decode(frame)) == frame


def rebuilt(modules: Built, group: str, msg: Any) -> Any:
    """Return the message as one of the freshly built module, which has its own classes."""
    module = modules.module(group)
    if type(msg).__module__ == module.__name__:
        return msg
    return module.decode(type(msg).encoder(msg))


def test_frames_of_the_engine_are_the_golden_ones(engine: Built) -> None:
    check_vectors("engine.json", engine, engine_messages())


def test_frames_with_every_kind_of_tensor_are_the_golden_ones(
    everything_built: Built,
) -> None:
    check_vectors(
        "tensors.json", everything_built, everything_messages(everything_built)
    )


def test_fingerprints_are_the_golden_ones(tmp_path: Path) -> None:
    folders = {"schema": ROOT / "schema"}
    folders |= {
        f"golden/{name}": good_schema(name, tmp_path) for name in sorted(cases("good"))
    }
    current = {}
    for label, folder in folders.items():
        schema = load_schema(folder)
        for group in schema.groups.values():
            current[f"{label}/{group.name}.yaml"] = {
                "fingerprint": Fingerprints(schema).of(group),
                "canonical": Fingerprints(schema).canonical(group),
            }
    vectors = load("fingerprints.json", current)
    assert vectors == current
    for vector in vectors.values():
        text = json.dumps(vector["canonical"], separators=(",", ":"), sort_keys=True)
        assert hashlib.sha256(text.encode()).hexdigest() == vector["fingerprint"]


def test_the_committed_modules_have_these_fingerprints(engine: Built) -> None:
    for module in (backend, frontend, tokenizer):
        group = engine.schema.groups[module.CODEC.group]
        assert module.CODEC.fingerprint == Fingerprints(engine.schema).of(group)
        assert module.CODEC.receiver == group.receiver


def test_sizes_are_what_was_promised() -> None:
    messages = engine_messages()
    assert len(backend.encode(messages["user"][1])) == 45
    assert len(tokenizer.encode(messages["detokenize"][1])) == 9
    largest = tokenizer.DetokenizeMsg(255, 65_535, True)
    assert len(tokenizer.encode(largest)) == 12

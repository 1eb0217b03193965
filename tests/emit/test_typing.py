"""What type checkers see: `mypy` checks this file, and an unused `type: ignore` is an error."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from msgen.generated import backend, tokenizer
from msgen.generated.common import SamplingParams
from msgen.runtime import Codec, EncodeError
from msgen.runtime.queues import ZmqPullQueue, ZmqPushQueue
from typing_extensions import assert_type


def test_the_module_is_typed_by_its_union() -> None:
    msg = backend.AbortBackendMsg(1)
    frame = assert_type(backend.encode(msg), bytes)
    assert_type(backend.decode(frame), backend.BackendMsg)
    assert_type(backend.CODEC, Codec[backend.BackendMsg])
    assert_type(backend.decode_frames(backend.encode_frames(msg)), backend.BackendMsg)
    assert_type(
        backend.encode_frames(msg, threshold=10), list[bytes | bytearray | memoryview]
    )
    assert_type(msg.encoder(), bytes)
    assert_type(backend.BaseBackendMsg.encoder(msg), bytes)
    assert_type(backend.BaseBackendMsg.decoder(frame), backend.BackendMsg)


def test_a_union_is_narrowed_by_class() -> None:
    msg = backend.decode(backend.encode(backend.AbortBackendMsg(1)))
    assert isinstance(msg, backend.AbortBackendMsg)
    assert_type(msg.uid, int)


def test_fields_have_the_types_of_the_schema() -> None:
    ids = torch.zeros(1, dtype=torch.int32)
    msg = backend.UserMsg(1, ids, SamplingParams())
    assert_type(msg.input_ids, torch.Tensor)
    assert_type(msg.sampling_params.temperature, float)
    text = tokenizer.TokenizeMsg(1, "x", SamplingParams()).text
    assert_type(text, str | list[dict[str, str]])


def test_a_mistake_is_found_before_the_program_runs() -> None:
    with pytest.raises(EncodeError):
        backend.encode(tokenizer.AbortMsg(1))  # type: ignore[arg-type]
    with pytest.raises(EncodeError):
        backend.encode(backend.AbortBackendMsg("one"))  # type: ignore[arg-type]


def test_queues_are_typed_by_their_codec(tmp_path: Path) -> None:
    addr = f"ipc://{tmp_path / 'q'}"
    with (
        ZmqPullQueue(addr, create=True, codec=backend.CODEC) as pull,
        ZmqPushQueue(addr, create=False, codec=backend.CODEC) as push,
    ):
        push.put(backend.ExitMsg())
        assert_type(pull.get(timeout=60), backend.BackendMsg)
        with pytest.raises(EncodeError):
            push.put(tokenizer.AbortMsg(1))  # type: ignore[arg-type]

"""Large payloads in frames of their own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from msgen.generated import backend, tokenizer
from msgen.generated.common import SamplingParams
from msgen.runtime import DecodeError, EncodeError, NotAMessage
from msgen.runtime.codec import wire


def user(tokens: int) -> backend.UserMsg:
    ids = torch.arange(tokens, dtype=torch.int32)
    return backend.UserMsg(1, ids, SamplingParams())


@pytest.mark.parametrize(
    ("tokens", "frames"), [(16 * 1024 - 1, 1), (16 * 1024, 2), (100_000, 2)]
)
def test_payloads_from_64_kib_up_travel_alone(tokens: int, frames: int) -> None:
    encoded = backend.encode_frames(user(tokens))
    assert len(encoded) == frames
    assert backend.decode_frames(encoded) == user(tokens)


def test_a_message_of_one_frame_is_the_same_as_inline() -> None:
    assert backend.encode_frames(user(3)) == [backend.encode(user(3))]
    assert backend.decode_frames([backend.encode(user(50_000))]) == user(50_000)


def test_the_slot_holds_the_frames_index() -> None:
    batch = backend.BatchBackendMsg([user(20_000), user(3), user(30_000)])
    head, *payloads = backend.encode_frames(batch)
    first, second, third = wire.unpack(head)[1]
    assert (first[2], type(second[2]), third[2]) == (1, bytes, 2)
    assert [len(memoryview(payload)) for payload in payloads] == [80_000, 120_000]


def test_a_frame_is_a_view_of_the_tensor_and_not_a_copy() -> None:
    msg = user(20_000)
    frames = backend.encode_frames(msg)
    msg.input_ids[0] = 99
    assert backend.decode_frames(frames).input_ids[0] == 99  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_frames_may_be_any_buffer(kind: Any) -> None:
    frames = [kind(frame) for frame in backend.encode_frames(user(20_000))]
    assert backend.decode_frames(frames) == user(20_000)


def test_bytes_and_tensors_of_every_container_can_be_frames(
    everything: Any, containers: Any
) -> None:
    msg = containers(
        blobs=[b"a" * 10, b"b"],
        blobmap={"k": b"c" * 10},
        anys=[b"d" * 10],
        limited={b"e" * 10: ""},
    )
    frames = everything.encode_frames(msg, threshold=10)
    assert frames[1:] == [b"a" * 10, b"c" * 10]
    assert everything.decode_frames(frames) == msg


def test_an_alternative_stays_inside_the_array(everything: Any) -> None:
    def unions(**changes: Any) -> Any:
        tiny = everything.Tiny(
            self=1, cls="", type=2, data=3, field=4, list=5, int=6, str=[]
        )
        values: dict[str, Any] = {
            "text": "",
            "number": 1,
            "wide": None,
            "tens": "",
            "msg": tiny,
            "msg_or": "",
            "single": tiny,
            "pairs": "",
            "things": [],
        }
        return everything.Unions(**{**values, **changes})

    for msg in (
        unions(wide=b"x" * 100),
        unions(tens=torch.arange(100, dtype=torch.int32)),
        unions(tens=torch.zeros(10, 10)),
    ):
        frames = everything.encode_frames(msg, threshold=10)
        assert len(frames) == 1
        assert everything.decode_frames(frames) == msg


def head_with(slot: Any) -> bytes:
    slots = wire.unpack(backend.encode(user(3)))
    slots[2] = slot
    return wire.pack(slots)


@pytest.mark.parametrize("index", [0, -1, 2, 1 << 40, True, 1.0, None])
def test_an_index_without_a_frame_is_refused(index: Any) -> None:
    with pytest.raises(DecodeError) as caught:
        backend.decode_frames([head_with(index), bytes(12)])
    assert caught.value.path == "UserMsg.input_ids"


def test_a_frame_is_taken_once() -> None:
    slots = wire.unpack(backend.encode(backend.BatchBackendMsg([user(3), user(3)])))
    for item in slots[1]:
        item[2] = 1
    with pytest.raises(DecodeError, match=r"data\[1\]\.input_ids: .*taken before"):
        backend.decode_frames([wire.pack(slots), bytes(12)])


def test_a_frame_of_a_wrong_size_is_refused() -> None:
    with pytest.raises(DecodeError, match=r"UserMsg\.input_ids"):
        backend.decode_frames([head_with(1), bytes(13)])


def test_a_frame_that_nothing_names_is_of_a_newer_writer() -> None:
    assert backend.decode_frames([backend.encode(user(3)), b"more"]) == user(3)


def test_no_frames_are_no_message() -> None:
    with pytest.raises(NotAMessage, match="got no frames"):
        backend.decode_frames([])


def test_a_frame_that_is_no_buffer_is_the_callers_mistake() -> None:
    with pytest.raises(TypeError):
        backend.decode_frames([head_with(1), "text"])  # type: ignore[list-item]


def test_an_encode_error_leaves_no_frames_behind() -> None:
    batch = backend.BatchBackendMsg([user(20_000), user(20_000)])
    batch.data[1].uid = 1 << 63  # type: ignore[union-attr]
    for _ in range(2):
        with pytest.raises(Exception, match=r"data\[1\]\.uid"):
            backend.encode_frames(batch)
    batch.data[1].uid = 5  # type: ignore[union-attr]
    assert len(backend.encode_frames(batch)) == 3


def test_what_follows_the_head_is_fetched_only_where_the_head_needs_it() -> None:
    fetched: list[int] = []

    def rest(frames: list[Any]) -> Any:
        def fetch() -> list[Any]:
            fetched.append(len(frames))
            return frames

        return fetch

    whole = backend.encode(user(3))
    assert backend.CODEC.decode_received(whole, rest([])) == user(3)
    assert fetched == []
    head, *payloads = backend.encode_frames(user(20_000))
    assert backend.CODEC.decode_received(head, rest(payloads)) == user(20_000)
    with pytest.raises(DecodeError, match=r"UserMsg\.input_ids"):
        backend.CODEC.decode_received(head, rest([]))
    with pytest.raises(NotAMessage):
        backend.CODEC.decode_received(b"junk", rest(payloads))
    assert fetched == [1, 0, 1]


def test_a_group_without_payloads_has_heads_only() -> None:
    msg = tokenizer.DetokenizeMsg(7, 678, False)
    assert tokenizer.encode_frames(msg) == [tokenizer.encode(msg)]
    with pytest.raises(EncodeError, match=r"DetokenizeMsg\.uid"):
        tokenizer.encode_frames(tokenizer.DetokenizeMsg(2**80, 1, True))


def test_a_codec_makes_the_batch_message_of_its_group() -> None:
    assert backend.CODEC.batch is not None
    batch = backend.CODEC.batch([user(1), backend.ExitMsg()])
    assert batch == backend.BatchBackendMsg([user(1), backend.ExitMsg()])

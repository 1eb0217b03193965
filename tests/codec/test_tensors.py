"""Tensors on the wire: every dtype, every layout on the way in, owned memory on the way out."""

from __future__ import annotations

import gc
import threading
import warnings
import weakref
from typing import Any

import pytest
import torch
from msgen.codegen.schema.model import DTYPES
from msgen.runtime import DecodeError, EncodeError
from msgen.runtime.codec import arena, dtypes, tensors, wire
from values import make_tensor, tensor_bytes

LENGTHS = (0, 1, 3, 600, 3_000, 40_000)


def send(codec: Any, msg: Any) -> Any:
    """Encode and decode, inline and in frames; both must give the same."""
    inline = codec.decode(codec.encode(msg))
    framed = codec.decode_frames(codec.encode_frames(msg, threshold=1))
    assert inline == framed == msg
    return inline


def any_tensor(everything: Any, tensor: torch.Tensor) -> torch.Tensor:
    """Send a tensor through a field of type `tensor[any, *]`."""
    received: torch.Tensor = send(
        everything.CODEC, make_message(everything, any2=tensor)
    ).any2
    return received


def make_message(everything: Any, **changes: Any) -> Any:
    values: dict[str, Any] = {
        "ids": torch.tensor([1, 2], dtype=torch.int32),
        "pos": torch.tensor([3, 4]),
        "mask": None,
        "scalar": torch.tensor(0.5, dtype=torch.float64),
        "fixed": torch.zeros(2, 3, dtype=torch.bfloat16),
        "fixed1": torch.zeros(4, dtype=torch.uint8),
        "anyd": torch.zeros(2),
        "anyr": torch.zeros(2, 1),
        "any2": torch.zeros(()),
        "lst": [],
        "lim": torch.zeros(1, dtype=torch.int8),
        "mp": {},
    }
    return everything.Tensors(**{**values, **changes})


def test_the_dtypes_of_generator_and_runtime_are_the_same() -> None:
    assert tuple(dtypes.DTYPE_NUMBERS) == DTYPES
    assert list(dtypes.DTYPE_NUMBERS.values()) == list(range(len(DTYPES)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", LENGTHS)
def test_every_dtype_arrives_as_it_was(
    everything: Any, dtype: str, length: int
) -> None:
    sent = make_tensor([length], dtype, 1)
    received = any_tensor(everything, sent)
    assert received.dtype is sent.dtype
    assert received.shape == sent.shape
    assert tensor_bytes(received) == tensor_bytes(sent)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_payload_is_little_endian_in_c_order(everything: Any, dtype: str) -> None:
    sent = make_tensor([2, 3], dtype, 0)
    slots = wire.unpack(everything.encode(make_message(everything, any2=sent.t())))
    number, *dims, payload = slots[9]
    assert (number, dims) == (DTYPES.index(dtype), [3, 2])
    assert payload == tensor_bytes(sent.t().contiguous())


STRANGE = {
    "0-dim": torch.tensor(7),
    "empty": torch.zeros(0),
    "empty with dims": torch.zeros(3, 0, 2),
    "non-contiguous": torch.arange(20).reshape(4, 5).t(),
    "strided": torch.arange(40)[::2],
    "reversed columns": torch.arange(6).reshape(2, 3).flip(1),
    "expanded": torch.tensor([[1.5]]).expand(3, 4),
    "storage offset": torch.arange(10)[3:7],
    "requires grad": torch.ones(3, requires_grad=True),
    "not a leaf": torch.ones(3, requires_grad=True) * 2,
    "parameter": torch.nn.Parameter(torch.ones(2)),
    "conjugate": torch.tensor([1 + 2j, 3 - 4j]).conj(),
    "negative view": torch.tensor([1 + 2j, 3 - 4j]).conj().imag,
    "channels last": torch.arange(24.0)
    .reshape(1, 2, 3, 4)
    .contiguous(memory_format=torch.channels_last),
    "bool of other bytes": torch.tensor([0, 1, 2, 255], dtype=torch.uint8).view(
        torch.bool
    ),
    "inference": torch.inference_mode()(lambda: torch.ones(2))(),
}


@pytest.mark.parametrize("name", STRANGE)
def test_any_layout_can_be_sent(everything: Any, name: str) -> None:
    sent = STRANGE[name]
    received = any_tensor(everything, sent)
    assert torch.equal(received, sent)
    assert received.shape == sent.shape
    assert not received.requires_grad
    assert received.is_contiguous()


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("framed", [False, True])
def test_a_decoded_tensor_owns_aligned_writable_memory(
    everything: Any, dtype: str, length: int, framed: bool
) -> None:
    msg = make_message(everything, any2=make_tensor([length], dtype, 1))
    frames = everything.encode_frames(msg, 1 if framed else 1 << 40)
    frames = [bytearray(frame) for frame in frames]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = everything.decode_frames(frames)
        second = everything.decode_frames(frames)
    assert first.any2.data_ptr() % arena.ALIGNMENT == 0
    for frame in frames:  # the buffer it came in may be used again
        frame[:] = bytes(len(frame))
    first.any2.view(torch.uint8).fill_(1)
    assert second == msg


def test_tensors_cut_from_one_block_do_not_overlap(everything: Any) -> None:
    frame = everything.encode(make_message(everything, any2=torch.zeros(100)))
    received = [everything.decode(frame).any2 for _ in range(2_000)]
    for number, tensor in enumerate(received):
        tensor.fill_(number)
    assert all(bool((tensor == number).all()) for number, tensor in enumerate(received))


def test_a_block_is_freed_with_the_last_tensor_cut_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    blocks: list[weakref.ref[Any]] = []
    new_block = arena._new_block

    def watched(size: int) -> memoryview:
        memory = new_block(size)
        blocks.append(weakref.ref(memory.obj))
        return memory

    monkeypatch.setattr(arena, "_new_block", watched)
    cut = arena.make_arena(128)
    tensors_of_two_blocks = [cut(bytes([number]), torch.uint8) for number in range(3)]
    assert [block() is None for block in blocks] == [False, False]
    del tensors_of_two_blocks[0]
    gc.collect()
    assert [block() is None for block in blocks] == [False, False]
    del tensors_of_two_blocks[0]
    gc.collect()
    assert [block() is None for block in blocks] == [True, False]


def test_threads_that_decode_at_once_do_not_share_memory(everything: Any) -> None:
    frames = [
        everything.encode(
            make_message(everything, any2=torch.full((50,), float(number)))
        )
        for number in range(4)
    ]
    failures: list[int] = []

    def work(number: int) -> None:
        kept = [everything.decode(frames[number]).any2 for _ in range(2_000)]
        if not all(bool((tensor == number).all()) for tensor in kept):
            failures.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


WRONG: dict[str, tuple[str, Any, str]] = {
    "no tensor": ("ids", [1, 2], "expected tensor[int32, seq], got list [1, 2]"),
    "dtype": (
        "ids",
        torch.zeros(2),
        "expected tensor[int32, seq], got tensor[float32, 2] (wrong dtype)",
    ),
    "rank": (
        "ids",
        torch.zeros(2, 1, dtype=torch.int32),
        "expected tensor[int32, seq], got tensor[int32, 2, 1] (wrong rank, 2)",
    ),
    "fixed dimension": (
        "fixed",
        torch.zeros(3, 3, dtype=torch.bfloat16),
        "expected tensor[bfloat16, 2, hidden], got tensor[bfloat16, 3, 3] (dimension 0 is 3)",
    ),
    "fixed vector": (
        "fixed1",
        torch.zeros(3, dtype=torch.uint8),
        "expected tensor[uint8, 4], got tensor[uint8, 3] (dimension 0 is 3)",
    ),
    "elements": (
        "lim",
        torch.zeros(9, dtype=torch.int8),
        "expected tensor[int8, k], got tensor[int8, 9] (9 elements, at most 8 are allowed)",
    ),
    "dtype off the list": (
        "any2",
        torch.zeros(2, dtype=torch.uint8).view(torch.bits8),
        "expected tensor[any, *], got tensor[bits8, 2] "
        "(dtype torch.bits8 has no place on the wire)",
    ),
    "sparse": (
        "any2",
        torch.eye(2).to_sparse(),
        "expected tensor[any, *], got tensor[float32, 2, 2] "
        "(layout torch.sparse_coo; call to_dense() first)",
    ),
    "meta": (
        "any2",
        torch.zeros(2, device="meta"),
        "expected tensor[any, *], got tensor[float32, 2] (a meta tensor, which has no data)",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_tensor_of_another_kind_is_refused(everything: Any, name: str) -> None:
    field, value, reason = WRONG[name]
    with pytest.raises(EncodeError) as caught:
        everything.encode(make_message(everything, **{field: value}))
    assert caught.value.path == f"Tensors.{field}"
    assert caught.value.reason == reason


def test_a_tensor_whose_storage_was_resized_away_is_refused(everything: Any) -> None:
    for length, left in ((4, 0), (1_000, 16), (20_000, 0), (20_000, 70_000)):
        for tensor in (
            torch.ones(length),
            torch.ones(2, length // 2).t(),
            torch.ones(length).bool(),
        ):
            tensor.untyped_storage().resize_(left)
            msg = make_message(everything, any2=tensor)
            for encode in (everything.encode, everything.encode_frames):
                if left < tensor.nbytes:
                    with pytest.raises(
                        EncodeError, match="its storage holds less memory than"
                    ):
                        encode(msg)


def test_a_part_of_a_larger_storage_is_whole(everything: Any) -> None:
    large = torch.arange(100_000)
    for part in (
        large[:10],
        large[-10:],
        large[50_000:],
        large[1:],
        large[::7],
        large[3:4],
    ):
        assert torch.equal(any_tensor(everything, part), part)


@pytest.mark.parametrize("length", LENGTHS)
def test_a_default_device_does_not_move_what_is_decoded(
    everything: Any, length: int
) -> None:
    msg = make_message(everything, any2=torch.zeros(length, dtype=torch.int32))
    inline, frames = everything.encode(msg), everything.encode_frames(msg, 1)
    with torch.device("meta"):
        received = [everything.decode(inline), everything.decode_frames(frames)]
    assert received == [msg, msg]


def test_decoding_under_fake_tensors_crashes_nothing(everything: Any) -> None:
    """The one place where the engines differ: torch's C interface makes real tensors."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    msg = make_message(everything, any2=torch.zeros(20_000))
    frame = everything.encode(msg)
    with FakeTensorMode(), pytest.raises(DecodeError):
        everything.CODEC._python.decode(frame)
    if everything.CODEC.engine == "native":
        with FakeTensorMode():
            decoded = everything.decode(frame)
        assert decoded == msg


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 0)])
def test_empty_tensors_can_be_frames(everything: Any, shape: tuple[int, ...]) -> None:
    for dtype in (torch.int32, torch.float32, torch.bool):
        msg = make_message(everything, any2=torch.zeros(shape, dtype=dtype))
        assert everything.decode_frames(everything.encode_frames(msg, 0)) == msg


def test_one_symbol_has_one_size_in_a_message(everything: Any) -> None:
    msg = make_message(everything, pos=torch.zeros(3, dtype=torch.int64))
    with pytest.raises(EncodeError) as caught:
        everything.encode(msg)
    assert str(caught.value) == "Tensors: dimension 'seq' is 2 in ids and 3 in pos"
    for field, value, where in (
        ("mask", torch.zeros(2, 5, dtype=torch.bool), "5 in mask"),
        ("mp", {"k": torch.zeros(7).to(torch.float8_e4m3fn)}, "7 in mp['k']"),
    ):
        with pytest.raises(
            EncodeError, match="dimension 'seq' is 2 in ids and"
        ) as caught:
            everything.encode(make_message(everything, **{field: value}))
        assert caught.value.reason.endswith(where)


def test_one_symbol_has_one_size_in_a_frame(everything: Any) -> None:
    slots = wire.unpack(everything.encode(make_message(everything)))
    slots[2] = bytes(8)
    with pytest.raises(DecodeError, match="dimension 'seq' is 2 in ids and 1 in pos"):
        everything.decode(wire.pack(slots))


BAD_SLOTS: dict[str, tuple[int, Any]] = {
    "not bytes": (1, "text"),
    "half an element": (1, bytes(7)),
    "frame index without frames": (1, 1),
    "no array": (4, bytes(8)),
    "too few dims": (5, [2, bytes(12)]),
    "negative dim": (5, [-2, -3, bytes(12)]),
    "dim is a bool": (9, [11, True, bytes(4)]),
    "dim is a float": (5, [2.0, 3, bytes(12)]),
    "size of another shape": (5, [2, 4, bytes(12)]),
    "fixed dim": (5, [3, 2, bytes(12)]),
    "unknown dtype": (9, [20, 1, bytes(4)]),
    "dtype is a bool": (9, [True, 1, bytes(1)]),
    "bool that is neither": (9, [0, 1, b"\x02"]),
    "huge dims around a zero": (9, [11, 2**62, 2**62, 0, b""]),
    "huge dims": (9, [11, 2**62, 2**62, b""]),
    "rank 65": (9, [11, *[1] * 65, bytes(4)]),
    "empty array": (9, []),
    "dtype alone": (9, [11]),
    "too many elements": (11, bytes(9)),
    "nil": (1, None),
}


@pytest.mark.parametrize("name", BAD_SLOTS)
def test_a_slot_that_is_no_tensor_is_refused(everything: Any, name: str) -> None:
    index, slot = BAD_SLOTS[name]
    slots = wire.unpack(everything.encode(make_message(everything)))
    slots[index] = slot
    with pytest.raises(DecodeError) as caught:
        everything.decode(wire.pack(slots))
    assert caught.value.path.startswith("Tensors.")


def test_equality_is_by_dtype_shape_and_content(everything: Any) -> None:
    one = make_message(everything, any2=torch.tensor([1.0, 2.0]))
    assert one == make_message(everything, any2=torch.tensor([1.0, 2.0]))
    for other in (
        torch.tensor([1.0, 3.0]),
        torch.tensor([1, 2]),
        torch.tensor([[1.0, 2.0]]),
        torch.tensor(1.0),
    ):
        assert one != make_message(everything, any2=other)
    assert one != make_message(everything, lst=[torch.zeros(1, dtype=torch.float16)])
    assert one != "another class"
    assert make_message(everything, mp={"a": one.any2}) != make_message(
        everything, mp={}
    )
    assert tensors.same((1, [one.any2]), (1, [one.any2.clone()]))
    assert not tensors.same([1], (1,))
    assert not tensors.same({"a": 1}, {"a": 2})
    with pytest.raises(TypeError):
        hash(one)


def test_equality_looks_across_devices() -> None:
    meta = torch.zeros(2, device="meta")
    assert not tensors.same(meta, torch.zeros(3))

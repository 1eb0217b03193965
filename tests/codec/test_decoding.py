"""What a decoder takes, and what it says about everything else. Decoding is total."""

from __future__ import annotations

import pickle
import resource
import struct
import sys
from typing import Any

import msgspec
import pytest
import torch
from msgen.generated import backend, frontend, tokenizer
from msgen.generated.common import SamplingParams
from msgen.runtime import DecodeError, NotAMessage, SchemaMismatch, UnknownMessage
from msgen.runtime.codec import wire

REPLY = frontend.UserReply(uid=7, incremental_output="hi", finished=False)
PARAMS = [0.0, -1, 1.0, False, 1024]


def slots_of(frame: bytes) -> list[Any]:
    slots: list[Any] = wire.unpack(frame)
    return slots


def with_slot(codec: Any, msg: Any, index: int, slot: Any) -> bytes:
    """Encode a message and put something else into one slot."""
    slots = slots_of(codec.encode(msg))
    slots[index] = slot
    return msgspec.msgpack.encode(slots)


def failure(codec: Any, frame: bytes) -> DecodeError:
    with pytest.raises(DecodeError) as caught:
        codec.decode(frame)
    assert str(caught.value) == f"{caught.value.path}: {caught.value.reason}"
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return caught.value


def user() -> backend.UserMsg:
    return backend.UserMsg(
        7, torch.tensor([1, 2, 3], dtype=torch.int32), SamplingParams()
    )


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_can_be_decoded(kind: Any) -> None:
    assert backend.decode(kind(backend.encode(user()))) == user()


@pytest.mark.parametrize("value", ["text", 5, None, [1]])
def test_what_is_no_buffer_is_the_callers_mistake(value: Any) -> None:
    with pytest.raises(TypeError):
        backend.decode(value)


@pytest.mark.parametrize(
    "encoded",
    [
        b"\x07",
        b"\xcc\x07",
        b"\xcd\0\x07",
        b"\xce\0\0\0\x07",
        b"\xcf" + bytes(7) + b"\x07",
        b"\xd0\x07",
        b"\xd1\0\x07",
        b"\xd2\0\0\0\x07",
        b"\xd3" + bytes(7) + b"\x07",
    ],
    ids=lambda encoded: f"{encoded[0]:02x}",
)
def test_every_form_of_an_integer_is_read(encoded: bytes) -> None:
    frame = frontend.encode(REPLY)
    assert frontend.decode(frame[:6] + encoded + frame[7:]) == REPLY


def test_float32_is_read_for_a_float() -> None:
    frame = backend.encode(user())
    frame = frame.replace(struct.pack(">Bd", 0xCB, 1.0), struct.pack(">Bf", 0xCA, 1.0))
    assert backend.decode(frame) == user()


def test_a_32_bit_float_takes_five_bytes(everything: Any, shared: Any) -> None:
    field = shared.Field(type="x", list=[])
    assert field.weight == 0.5
    frame = everything.encode(everything.Evolved(msg=1, frames="", sp=field))
    assert struct.pack(">Bf", 0xCA, 0.5) in frame
    assert struct.pack(">Bd", 0xCB, float("-inf")) in frame
    assert everything.decode(frame).sp == field


WRONG_SLOTS: dict[str, tuple[int, Any, str, str]] = {
    "str for int": (1, "7", "UserMsg.uid", "expected int (i64), got str '7'"),
    "bool for int": (1, True, "UserMsg.uid", "expected int (i64), got bool True"),
    "float for int": (1, 7.0, "UserMsg.uid", "expected int (i64), got float 7.0"),
    "nil for int": (1, None, "UserMsg.uid", "expected int (i64), got None"),
    "too large": (
        1,
        1 << 63,
        "UserMsg.uid",
        f"expected int (i64), got int {1 << 63}, out of range {-(1 << 63)} to {(1 << 63) - 1}",
    ),
    "no struct": (
        3,
        5,
        "UserMsg.sampling_params",
        "expected an array of SamplingParams, got int 5",
    ),
    "struct too short": (
        3,
        PARAMS[:4],
        "UserMsg.sampling_params",
        "expected at least 5 slots, got 4; 'max_tokens' is missing",
    ),
    "in a struct": (
        3,
        [0.0, "x", *PARAMS[2:]],
        "UserMsg.sampling_params.top_k",
        "expected int (i64), got str 'x'",
    ),
    "int for float": (
        3,
        [1, *PARAMS[1:]],
        "UserMsg.sampling_params.temperature",
        "expected float (f64), got int 1",
    ),
    "frame index": (
        2,
        1,
        "UserMsg.input_ids",
        "expected tensor[int32, seq], got int 1, the index of a frame, where none can stand",
    ),
}


@pytest.mark.parametrize("name", WRONG_SLOTS)
def test_a_wrong_slot_is_named(name: str) -> None:
    index, slot, path, reason = WRONG_SLOTS[name]
    error = failure(backend.CODEC, with_slot(backend.CODEC, user(), index, slot))
    assert (error.path, error.reason) == (path, reason)


def test_a_wrong_slot_inside_a_batch_is_named() -> None:
    slots = slots_of(backend.encode(backend.BatchBackendMsg([user(), user()])))
    slots[1][1][3][2] = None
    slots[1][1][1] = "x"
    error = failure(backend.CODEC, wire.pack(slots))
    assert error.path == "BatchBackendMsg.data[1].uid"


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (
            [0, []],
            "expected a tag of (1 UserMsg, 2 AbortBackendMsg, 3 ExitMsg, 4 PingBackendMsg), got int 0",
        ),
        (
            [9],
            "expected a tag of (1 UserMsg, 2 AbortBackendMsg, 3 ExitMsg, 4 PingBackendMsg), got int 9",
        ),
        (
            [True, 7],
            "expected a tag of (1 UserMsg, 2 AbortBackendMsg, 3 ExitMsg, 4 PingBackendMsg), got bool True",
        ),
        (
            [2.0, 7],
            "expected a tag of (1 UserMsg, 2 AbortBackendMsg, 3 ExitMsg, 4 PingBackendMsg), got float 2.0",
        ),
        (
            [[2], 7],
            "expected a tag of (1 UserMsg, 2 AbortBackendMsg, 3 ExitMsg, 4 PingBackendMsg), got list [2]",
        ),
        (
            [],
            "expected a tag of (1 UserMsg, 2 AbortBackendMsg, 3 ExitMsg, 4 PingBackendMsg), got None",
        ),
        (
            {2: 7},
            "expected UserMsg or AbortBackendMsg or ExitMsg or PingBackendMsg, got dict {2: 7}",
        ),
    ],
)
def test_what_is_no_message_in_a_batch_is_named(item: Any, reason: str) -> None:
    slots = slots_of(backend.encode(backend.BatchBackendMsg([])))
    slots[1] = [[3], item]
    error = failure(backend.CODEC, wire.pack(slots))
    assert (error.path, error.reason) == ("BatchBackendMsg.data[1]", reason)


NOT_MESSAGES: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "the bytes are not msgpack: "),
    "cut off": (b"\x92\x01", "the bytes are not msgpack: "),
    "more than one value": (b"\x90\x90", "the bytes are not msgpack: "),
    "reserved byte": (b"\xc1", "the bytes are not msgpack: "),
    "str that is not UTF-8": (b"\x91\xa1\xff", "the bytes are not msgpack: "),
    "list as a key": (b"\x81\x90\x01", "the bytes are not msgpack: "),
    "no array": (b"\x05", "expected an array with a header, got int 5"),
    "map": (
        b"\x81\x00\xce\x80\x00\x00\x00",
        "expected an array with a header, got dict ",
    ),
    "empty array": (b"\x90", "expected an array with a header, got list []"),
    "header of another protocol": (
        b"\x91\xa4ping",
        "expected a msgen header of 0x80000000 or more, got str 'ping'",
    ),
    "small header": (
        b"\x91\x05",
        "expected a msgen header of 0x80000000 or more, got int 5",
    ),
    "header beyond 32 bits": (
        b"\x91\xcf\0\0\0\x01\0\0\0\0",
        "expected a msgen header of 0x80000000 or more, got int 4294967296",
    ),
    "bad timestamp": (
        b"\x91\xd6\xff\xff\xff\xff\xff"[:-1],
        "the bytes are not msgpack: ",
    ),
}


@pytest.mark.parametrize("name", NOT_MESSAGES)
def test_what_is_not_ours_is_told_apart(name: str) -> None:
    frame, reason = NOT_MESSAGES[name]
    error = failure(backend.CODEC, frame)
    assert type(error) is NotAMessage
    assert error.path == "backend"
    assert error.reason.startswith(reason)


def test_a_float_that_equals_the_header_is_no_header() -> None:
    frame = backend.encode(backend.ExitMsg())
    header = slots_of(frame)[0]
    error = failure(backend.CODEC, msgspec.msgpack.encode([float(header)]))
    assert type(error) is NotAMessage


def test_another_group_is_a_schema_mismatch_with_both_fingerprints() -> None:
    error = failure(backend.CODEC, tokenizer.encode(tokenizer.AbortMsg(1)))
    assert isinstance(error, SchemaMismatch)

    assert error.ours == backend.CODEC.fingerprint
    assert error.theirs == f"{int(tokenizer.CODEC.fingerprint[:6], 16) & ~1:06x}"
    assert error.ours in str(error)
    assert error.theirs in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (again.ours, again.theirs, str(again)) == (
        error.ours,
        error.theirs,
        str(error),
    )


def test_an_unknown_message_of_the_same_schema_is_told_apart(everything: Any) -> None:
    header = slots_of(everything.encode(everything.Nothing()))[0]
    error = failure(everything.CODEC, wire.pack([header & ~0xFF | 99]))
    assert isinstance(error, UnknownMessage)
    assert error.tag == 99
    assert (
        error.reason
        == "this build (version 3) has no message with tag 99; a newer peer sends it"
    )
    removed = failure(everything.CODEC, wire.pack([header & ~0xFF | 8, 1]))
    assert isinstance(removed, UnknownMessage)
    assert removed.reason.startswith(
        "message 'Gone' (tag 8) was removed from the schema; an older peer"
    )
    assert pickle.loads(pickle.dumps(removed)).tag == 8


def test_errors_say_whose_fault_they_are() -> None:
    for cls in (NotAMessage, SchemaMismatch, UnknownMessage):
        assert issubclass(cls, DecodeError)


def test_a_tuple_comes_back_as_a_tuple_and_int_keys_as_ints(
    everything: Any, shared: Any
) -> None:
    frame = everything.encode(
        everything.Unions(
            text="t",
            number=1,
            wide=None,
            tens="none",
            msg=everything.Tiny(
                self=1, cls="c", type=2, data=3, field=4, list=5, int=6, str=["s"]
            ),
            msg_or=everything.Nothing(),
            single=everything.Tiny(
                self=1, cls="c", type=2, data=3, field=4, list=5, int=6, str=[]
            ),
            pairs=(1, "x"),
            things=[1, "two", shared.Field(type="x", list=[])],
        )
    )
    msg = everything.decode(frame)
    assert msg.pairs == (1, "x")
    assert type(msg.pairs) is tuple
    assert type(msg.msg) is everything.Tiny
    assert type(msg.msg_or) is everything.Nothing
    assert msg.things[2] == shared.Field(type="x", list=[])
    assert msg.opt == 5


def test_the_deepest_array_that_msgpack_reads_does_no_harm() -> None:
    for depth in (10, 500, 1_000, 5_000, 100_000):
        for opener in (b"\x91", b"\x81\x00", b"\xdd\0\0\0\x01"):
            assert isinstance(failure(backend.CODEC, opener * depth), DecodeError)


def test_a_recursive_frame_deeper_than_the_limit_is_refused(everything: Any) -> None:
    header = slots_of(everything.encode(everything.Nothing()))[0] & ~0xFF | 9
    inner: Any = None
    for _ in range(70):
        inner = [9, inner, [], None]
    error = failure(everything.CODEC, msgspec.msgpack.encode([header, inner, [], None]))
    assert error.path == "Recursive" + ".inner" * 64
    assert error.reason.startswith("nested more than 64 levels deep")


def test_a_plain_value_deeper_than_the_limit_is_refused(everything: Any) -> None:
    slots = slots_of(everything.encode(everything.Evolved(msg=1, frames="")))
    value: Any = 1
    for _ in range(33):
        value = [value]
    slots[9] = value
    error = failure(everything.CODEC, msgspec.msgpack.encode(slots))
    assert error.reason == "nested more than 32 levels deep"


@pytest.mark.parametrize(
    ("frame", "label"),
    [
        (b"\xdd\xff\xff\xff\xff", "array of 4 billion"),
        (b"\xdf\xff\xff\xff\xff", "map of 4 billion"),
        (b"\xc6\xff\xff\xff\xff", "bin of 4 GiB"),
        (b"\xdb\xff\xff\xff\xff", "str of 4 GiB"),
        (b"\xc9\xff\xff\xff\xff\x01", "ext of 4 GiB"),
    ],
)
def test_a_huge_declared_length_takes_no_memory(frame: bytes, label: str) -> None:
    before = _peak_memory()
    for prefix in (b"", backend.encode(user())[:7]):
        assert isinstance(
            failure(backend.CODEC, prefix + frame + bytes(1000)), DecodeError
        )
    assert _peak_memory() - before < 64 << 20, label


def test_nested_headers_that_each_claim_the_rest_take_no_memory() -> None:
    size = 1 << 20
    before = _peak_memory()
    failure(
        backend.CODEC, (b"\xdd" + struct.pack(">I", size - 10_000)) * 900 + bytes(size)
    )
    assert _peak_memory() - before < 256 << 20


def _peak_memory() -> int:
    """The largest resident size that this process had, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def test_the_message_owns_its_data() -> None:
    frame = bytearray(backend.encode(user()))
    msg = backend.decode(frame)
    frame[:] = bytes(len(frame))
    assert msg == user()


def test_two_decodings_share_nothing(everything: Any) -> None:
    frame = everything.encode(everything.Evolved(msg=1, frames=""))
    first, second = everything.decode(frame), everything.decode(frame)
    first.added.append(3)
    first.sp.list.append(1)
    first.anyf["a"].clear()
    assert second == everything.decode(frame)


@pytest.mark.parametrize(
    ("index", "number", "path"),
    [(16, float("nan"), "Scalars.p"), (12, 1e300, "Scalars.z")],
)
def test_floats_outside_their_field_are_refused(
    everything: Any, scalars: Any, index: int, number: float, path: str
) -> None:
    frame = with_slot(everything.CODEC, scalars(), index, number)
    assert failure(everything.CODEC, frame).path == path


def test_an_enum_number_that_this_build_does_not_know(
    everything: Any, scalars: Any
) -> None:
    msg = scalars()
    frame = with_slot(everything.CODEC, msg, 19, 77)
    assert everything.decode(frame).s is type(msg.s).abort
    error = failure(everything.CODEC, with_slot(everything.CODEC, msg, 20, 77))
    assert str(error) == "Scalars.t: expected Strict, got int 77, no number of a member"


def test_errors_are_one_short_line_whatever_the_peer_sends(
    everything: Any, containers: Any
) -> None:
    nested: Any = 7
    for _ in range(6):
        nested = [nested] * 6
    for value in (
        nested,
        "x" * 1_000_000,
        {"k" * 1_000_000: [0, "x"]},
        ["a\nb\rc\u2028"] * 3,
    ):
        for index in (6, 1):
            frame = with_slot(everything.CODEC, containers(), index, value)
            error = failure(everything.CODEC, frame)
            assert len(str(error)) < 1_000
            assert str(error).isprintable()


def test_a_long_key_before_a_fault_costs_no_time(
    everything: Any, containers: Any
) -> None:
    # Written out for each item, the paths would be 20 GB of text in all.
    slots = slots_of(everything.encode(containers()))
    slots[6] = {"k" * 100_000: [{}] * 200_000}
    slots[11] = "no dict"
    error = failure(everything.CODEC, msgspec.msgpack.encode(slots))
    assert error.path == "Containers.flags"

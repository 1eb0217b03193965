"""What an encoder takes, what it converts, and what it refuses with the field's path."""

from __future__ import annotations

import dataclasses
import math
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from msgen.generated import backend, tokenizer
from msgen.generated.common import SamplingParams
from msgen.runtime import EncodeError
from msgen.runtime.codec import wire

INTS = {
    width: (
        (0, (1 << int(width[1:])) - 1)
        if width[0] == "u"
        else (-(1 << int(width[1:]) - 1), (1 << int(width[1:]) - 1) - 1)
    )
    for width in ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
}
FIELD_OF = dict(zip(INTS, ("c", "d", "e", "f", "g", "h", "i", "j")))


def user(**changes: Any) -> backend.UserMsg:
    values: dict[str, Any] = {
        "uid": 7,
        "input_ids": torch.tensor([1, 2, 3], dtype=torch.int32),
        "sampling_params": SamplingParams(),
    }
    return backend.UserMsg(**{**values, **changes})


def refusal(codec: Any, msg: Any) -> EncodeError:
    """Return the error of encoding, which must be the same with frames."""
    with pytest.raises(EncodeError) as caught:
        codec.encode(msg)
    with pytest.raises(EncodeError) as framed:
        codec.encode_frames(msg)
    assert str(framed.value) == str(caught.value)
    assert str(caught.value) == f"{caught.value.path}: {caught.value.reason}"
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return caught.value


@pytest.mark.parametrize("width", INTS)
def test_integers_hold_their_whole_range_and_no_more(
    everything: Any, scalars: Any, width: str
) -> None:
    name = FIELD_OF[width]
    low, high = INTS[width]
    for value in (low, high):
        msg = scalars(**{name: value})
        assert getattr(everything.decode(everything.encode(msg)), name) == value
    for value in (low - 1, high + 1, 1 << 200):
        error = refusal(everything.CODEC, scalars(**{name: value}))
        assert error.path == f"Scalars.{name}"
        assert error.reason.startswith(f"expected int ({width}), got int ")
        assert error.reason.endswith(f", out of range {low} to {high}")


@pytest.mark.parametrize(
    "value",
    [np.int8(5), np.int32(5), np.int64(5), np.uint64(5), type("Int", (int,), {})(5)],
    ids=lambda value: type(value).__name__,
)
def test_numpy_integers_and_subclasses_are_taken_for_ints(
    everything: Any, scalars: Any, containers: Any, value: Any
) -> None:
    plain = everything.encode(scalars(b=5, k=5.0))
    assert everything.encode(scalars(b=value, k=value)) == plain
    assert everything.encode(containers(ints=[value])) == everything.encode(
        containers(ints=[5])
    )
    assert everything.encode(scalars(o=[value])) == everything.encode(scalars(o=[5]))


@pytest.mark.parametrize(
    "value",
    [
        np.float16(1.5),
        np.float32(1.5),
        np.float64(1.5),
        type("Float", (float,), {})(1.5),
    ],
    ids=lambda value: type(value).__name__,
)
def test_numpy_floats_and_subclasses_are_taken_for_floats(
    everything: Any, scalars: Any, containers: Any, value: Any
) -> None:
    assert everything.encode(scalars(k=value, z=value)) == everything.encode(
        scalars(k=1.5, z=1.5)
    )
    msg = containers(
        floats=[value], singles=[value], mixed=(value, value, containers().mixed[2])
    )
    plain = containers(
        floats=[1.5], singles=[1.5], mixed=(1.5, 1.5, containers().mixed[2])
    )
    assert everything.encode(msg) == everything.encode(plain)


def test_an_int_is_taken_for_a_float_and_arrives_as_one() -> None:
    msg = user(sampling_params=SamplingParams(temperature=1, top_p=np.int64(0)))
    params = backend.decode(backend.encode(msg)).sampling_params  # type: ignore[union-attr]
    assert params == SamplingParams(temperature=1.0, top_p=0.0)
    assert type(params.temperature) is float


def test_a_numpy_bool_is_taken_for_a_bool() -> None:
    msg = tokenizer.DetokenizeMsg(1, 2, np.bool_(True))  # type: ignore[arg-type]
    assert tokenizer.decode(tokenizer.encode(msg)) == tokenizer.DetokenizeMsg(
        1, 2, True
    )


def test_bytes_may_be_any_buffer(everything: Any, scalars: Any) -> None:
    plain = everything.encode(scalars(n=b"abc"))
    for value in (bytearray(b"abc"), memoryview(b"abc")):
        assert everything.encode(scalars(n=value)) == plain


WRONG_SCALARS = {
    "str in int": ("b", "abc", "expected int (i64), got str 'abc'"),
    "bool in int": ("b", True, "expected int (i64), got bool True"),
    "numpy bool in int": ("b", np.bool_(True), "expected int (i64), got bool np.True_"),
    "float in int": ("b", 1.0, "expected int (i64), got float 1.0"),
    "None in int": ("b", None, "expected int (i64), got None"),
    "int in bool": ("a", 1, "expected bool, got int 1"),
    "bool in float": ("k", True, "expected float (f64), got bool True"),
    "str in float": ("k", "1.5", "expected float (f64), got str '1.5'"),
    "huge int in float": (
        "k",
        10**400,
        f"expected float (f64), got int {'1' + '0' * 17}...{'0' * 19}, too large for a float",
    ),
    "bytes in str": ("m", b"abc", "expected str, got bytes b'abc'"),
    "str in bytes": ("n", "abc", "expected bytes, got str 'abc'"),
    "nan in finite": (
        "p",
        math.nan,
        "expected finite float (f64), got float nan, which is not finite",
    ),
    "inf in finite": (
        "p",
        math.inf,
        "expected finite float (f64), got float inf, which is not finite",
    ),
    "too large for f32": (
        "z",
        1e39,
        "expected float (f32), got float 1e+39, too large for 32 bits",
    ),
    "too long str": ("q", "abcdef", "length 6 is above the limit of 5"),
    "too long bytes": ("r", b"abcdef", "length 6 is above the limit of 5"),
    "number in enum": ("s", 1, "expected FinishReason, got int 1"),
    "lone surrogate": (
        "m",
        "ab\ud800",
        "expected str, got str 'ab\\ud800', which has a lone surrogate at 2",
    ),
}


@pytest.mark.parametrize("name", WRONG_SCALARS)
def test_a_wrong_scalar_is_refused(everything: Any, scalars: Any, name: str) -> None:
    field, value, reason = WRONG_SCALARS[name]
    error = refusal(everything.CODEC, scalars(**{field: value}))
    assert (error.path, error.reason) == (f"Scalars.{field}", reason)


def test_a_member_of_another_enum_is_refused(
    everything: Any, scalars: Any, shared: Any
) -> None:
    error = refusal(everything.CODEC, scalars(t=shared.FinishReason.stop))
    assert error.reason == "expected Strict, got FinishReason <FinishReason.stop: 0>"


CYCLE: list[Any] = []
CYCLE.append(CYCLE)
WRONG_PLAIN: dict[str, tuple[Any, str, str]] = {
    "object": (
        object,
        "",
        "expected None, bool, int, float, str, bytes, or lists and str-keyed dicts of them, got type <class 'object'>",
    ),
    "tuple": (
        [(1, 2)],
        "[0]",
        "expected None, bool, int, float, str, bytes, or lists and str-keyed dicts of them, got tuple (1, 2)",
    ),
    "int key": ({"a": {1: 2}}, "['a']", "expected str keys, got int 1"),
    "integer beyond 64 bits": (
        {"a": [1 << 64]},
        "['a'][0]",
        "expected an integer of 64 bits, got int 18446744073709551616",
    ),
    "cycle": (
        CYCLE,
        "[0]" * 32,
        "nested more than 32 levels deep; does it contain itself?",
    ),
    "surrogate": (
        ["\udc80"],
        "[0]",
        "expected str, got str '\\udc80', which has a lone surrogate at 0",
    ),
}


@pytest.mark.parametrize("name", WRONG_PLAIN)
def test_a_value_that_is_not_plain_is_refused(
    everything: Any, scalars: Any, name: str
) -> None:
    value, path, reason = WRONG_PLAIN[name]
    error = refusal(everything.CODEC, scalars(o=value))
    assert (error.path, error.reason) == (f"Scalars.o{path}", reason)


def test_plain_values_keep_their_kinds(everything: Any, scalars: Any) -> None:
    value = {"a": [1, -1, 2**64 - 1, 1.0, True, None, "text", b"raw"], "": {}}
    received = everything.decode(everything.encode(scalars(o=value))).o
    assert received == value
    assert [type(item) for item in received["a"]] == [type(item) for item in value["a"]]


def test_plain_values_may_be_32_levels_deep(everything: Any, scalars: Any) -> None:
    value: Any = 1
    for _ in range(32):
        value = [value]
    assert everything.decode(everything.encode(scalars(o=value))).o == value


WRONG_CONTAINERS: dict[str, tuple[str, Any, str, str]] = {
    "tuple for list": (
        "ints",
        (1,),
        "ints",
        "expected list of int (i64), got tuple (1,)",
    ),
    "item": ("ints", [1, "x"], "ints[1]", "expected int (i64), got str 'x'"),
    "finite item": (
        "floats",
        [0.0, math.nan],
        "floats[1]",
        "expected finite float (f64), got float nan, which is not finite",
    ),
    "list for tuple": (
        "one",
        [1],
        "one",
        "expected tuple of (int (i64)), got list [1]",
    ),
    "tuple length": (
        "one",
        (1, 2),
        "one",
        "expected tuple of (int (i64)), got tuple (1, 2)",
    ),
    "tuple item": (
        "tuples",
        [(1, 2), (3, 999)],
        "tuples[1][1]",
        "expected int (i8), got int 999, out of range -128 to 127",
    ),
    "deep value": (
        "nested",
        {"k": [{}, {5: ("a", 1)}]},
        "nested['k'][1][5][1]",
        "expected bool, got int 1",
    ),
    "deep key": (
        "nested",
        {"k": [{"five": ("a", True)}]},
        "key of Containers.nested['k'][0]",
        "expected int (i64), got str 'five'",
    ),
    "blob": ("blobs", [b"", "x"], "blobs[1]", "expected bytes, got str 'x'"),
    "blob in dict": ("blobmap", {"k": 1}, "blobmap['k']", "expected bytes, got int 1"),
    "enum key": (
        "by_reason",
        {0: None},
        "key of Containers.by_reason",
        "expected FinishReason, got int 0",
    ),
    "too many entries": (
        "limited",
        {bytes([n]): "" for n in range(4)},
        "limited",
        "length 4 is above the limit of 3",
    ),
    "any item": (
        "anys",
        [1, {2}],
        "anys[1]",
        "expected None, bool, int, float, str, bytes, or lists and str-keyed dicts of them, got set {2}",
    ),
}


@pytest.mark.parametrize("name", WRONG_CONTAINERS)
def test_a_wrong_item_is_refused_with_its_path(
    everything: Any, containers: Any, name: str
) -> None:
    field, value, path, reason = WRONG_CONTAINERS[name]
    error = refusal(everything.CODEC, containers(**{field: value}))
    if not path.startswith("key of"):
        path = f"Containers.{path}"
    assert (error.path, error.reason) == (path, reason)


def test_the_path_leads_through_structs_lists_dicts_and_batches(
    everything: Any, containers: Any, shared: Any
) -> None:
    inner = shared.Field(type=5, list=[])
    outer = shared.Field(type="x", list=[shared.Field(type="y", list=[]), inner])
    msg = containers(structs=[None, outer])
    error = refusal(everything.CODEC, msg)
    assert error.path == "Containers.structs[1].list[1].type"
    batch = everything.BatchEverythingMsg([everything.Nothing(), msg])
    error = refusal(everything.CODEC, batch)
    assert error.path == "BatchEverythingMsg.data[1].structs[1].list[1].type"
    assert error.reason == "expected str, got int 5"


def test_the_example_of_the_readme() -> None:
    error = refusal(
        backend.CODEC,
        user(sampling_params=SamplingParams(top_k="abc")),  # type: ignore[arg-type]
    )
    assert (
        str(error) == "UserMsg.sampling_params.top_k: expected int (i64), got str 'abc'"
    )


def test_a_look_alike_is_not_a_struct() -> None:
    @dataclasses.dataclass
    class Params:
        temperature: float = 0.0
        top_k: int = -1
        top_p: float = 1.0
        ignore_eos: bool = False
        max_tokens: int = 1024

    error = refusal(backend.CODEC, user(sampling_params=Params()))
    assert error.path == "UserMsg.sampling_params"
    assert error.reason.startswith("expected SamplingParams, got Params ")


@pytest.mark.parametrize("value", [42, None, "text", SamplingParams(), backend.UserMsg])
def test_what_is_no_message_of_the_group_is_refused(value: Any) -> None:
    error = refusal(backend.CODEC, value)
    assert error.path == "backend"
    assert error.reason.startswith(
        "expected a message of the group (UserMsg, AbortBackendMsg, ExitMsg, PingBackendMsg, "
        "BatchBackendMsg), got "
    )


def test_a_batch_holds_messages_of_the_group_but_no_batch() -> None:
    for item in (tokenizer.AbortMsg(1), backend.BatchBackendMsg([]), None):
        error = refusal(backend.CODEC, backend.BatchBackendMsg([user(), item]))  # type: ignore[list-item]
        assert error.path == "BatchBackendMsg.data[1]"
        assert error.reason.startswith(
            "expected UserMsg or AbortBackendMsg or ExitMsg or PingBackendMsg, got "
        )


def test_a_deleted_attribute_is_named() -> None:
    msg = user()
    del msg.uid
    error = refusal(backend.CODEC, msg)
    assert str(error) == "UserMsg.uid: expected int (i64), but the attribute is not set"


def test_an_attribute_that_raises_is_named() -> None:
    class Broken(backend.UserMsg):
        @property
        def uid(self) -> int:
            raise RuntimeError("no uid today")

        @uid.setter
        def uid(self, value: int) -> None: ...

    error = refusal(
        backend.CODEC, Broken(1, torch.zeros(1, dtype=torch.int32), SamplingParams())
    )
    assert error.path == "UserMsg.uid"
    assert error.reason == "reading it failed: RuntimeError('no uid today')"


def test_a_value_whose_repr_fails_is_still_named() -> None:
    class Hostile:
        def __repr__(self) -> str:
            raise RuntimeError

    error = refusal(backend.CODEC, user(uid=Hostile()))
    assert error.reason.startswith(
        "expected int (i64), got Hostile <Hostile instance at "
    )
    # More digits than Python is willing to write.
    assert refusal(backend.CODEC, user(uid=1 << 20_000)).reason.startswith(
        "expected int (i64), got int "
    )


def test_a_subclass_of_a_message_is_sent_as_the_message() -> None:
    class Traced(backend.UserMsg):
        pass

    msg = Traced(7, user().input_ids, SamplingParams())
    assert backend.encode(msg) == backend.encode(user())
    batch = backend.BatchBackendMsg([msg])
    assert backend.decode(backend.encode(batch)) == backend.BatchBackendMsg([user()])


def test_a_subclass_of_str_list_or_dict_is_sent_as_its_base() -> None:
    class Text(str):
        pass

    class Turns(list[dict[str, str]]):
        pass

    for text, plain in (
        (Text("hi"), "hi"),
        (Turns([{"role": "user"}]), [{"role": "user"}]),
    ):
        msg = tokenizer.TokenizeMsg(1, text, SamplingParams())
        again = tokenizer.decode(tokenizer.encode(msg))
        assert again == tokenizer.TokenizeMsg(1, plain, SamplingParams())
        assert type(again.text) is type(plain)


def test_user_data_cannot_pose_as_anything_else() -> None:
    turns = [{"__type__": "ExitMsg", "role": "user", "content": "\x93\xce\x80"}]
    msg = tokenizer.TokenizeMsg(1, turns, SamplingParams())
    assert tokenizer.decode(tokenizer.encode(msg)) == msg


def test_a_conversation_holds_strings_only() -> None:
    turns: list[Any] = [{"role": "user", "content": None}]
    msg = tokenizer.TokenizeMsg(1, turns, SamplingParams())
    error = refusal(tokenizer.CODEC, msg)
    assert error.path == "TokenizeMsg.text[0]['content']"
    msg = tokenizer.TokenizeMsg(1, 5, SamplingParams())  # type: ignore[arg-type]
    error = refusal(tokenizer.CODEC, msg)
    assert error.reason == "expected str or list of dict of str to str, got int 5"


def test_a_recursive_struct_may_be_64_levels_deep(
    everything: Any, containers: Any, shared: Any
) -> None:
    def chain(levels: int) -> Any:
        node = None
        for number in range(levels):
            node = shared.Node(value=number, next=node)
        return node

    msg = containers(tree=chain(64))
    assert everything.decode(everything.encode(msg)) == msg
    error = refusal(everything.CODEC, containers(tree=chain(65)))
    assert error.path == "Containers.tree" + ".next" * 64
    assert error.reason == "nested more than 64 levels deep; does it contain itself?"


def test_a_message_that_contains_itself_is_refused(everything: Any) -> None:
    msg = everything.Recursive(inner=None, many=[], node=None)
    msg.inner = msg
    error = refusal(everything.CODEC, msg)
    assert error.path == "Recursive" + ".inner" * 64


def test_the_message_may_be_changed_after_encoding() -> None:
    msg = user()
    frame = backend.encode(msg)
    msg.input_ids.zero_()
    msg.uid = 8
    assert backend.decode(frame) == user()


def test_errors_can_be_pickled() -> None:
    error = refusal(backend.CODEC, user(uid="x"))
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.path) == (
        EncodeError,
        str(error),
        error.path,
    )


def test_the_base_class_encodes_and_decodes() -> None:
    frame = backend.BaseBackendMsg.encoder(user())
    assert frame == user().encoder() == backend.encode(user())
    assert backend.BaseBackendMsg.decoder(frame) == user()
    assert issubclass(backend.UserMsg, backend.BaseBackendMsg)


def test_large_messages_do_not_stay_in_memory() -> None:
    encode = backend.CODEC._python.encode
    wire._packers.clear()
    encode(user(input_ids=torch.zeros(1 << 19, dtype=torch.int32)))
    assert wire._packers == []
    encode(user())
    assert len(wire._packers) == 1

"""The compiled engine by itself: how it is chosen, and what can be done to the objects it handles."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import msgpack
import numpy as np
import pytest
import torch
from building import Built, built, write_schema
from engines import NATIVE, GaveUp, Outcome, outcome, strict_engine
from golden import good_schema
from msgen.generated import backend, common, tokenizer
from msgen.runtime import ENGINE, DecodeError, EncodeError
from msgen.runtime.codec import native_engine
from processes import GENEROUS
from sizes import size
from torch.overrides import TorchFunctionMode

MESSAGES = size("MSGEN_REFCOUNT_MESSAGES", 50_000, 2_000_000)
"""Messages over which reference counts must stay flat; the documented long run makes ten million."""

native_only = pytest.mark.skipif(not NATIVE, reason="the compiled codec is not here")


def user(tokens: int = 3) -> backend.UserMsg:
    return backend.UserMsg(
        7, torch.arange(tokens, dtype=torch.int32), common.SamplingParams()
    )


def script(text: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", text],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=GENEROUS,
        check=False,
    )


SAY = (
    "import msgen.runtime as r; from msgen.generated import backend as b;"
    "print(r.ENGINE, b.CODEC.engine, b.encode(b.ExitMsg()).hex(), r.codec.native_engine.why_not)"
)


@pytest.mark.processes
@native_only
def test_the_variable_chooses_the_engine() -> None:
    frame = backend.encode(backend.ExitMsg()).hex()
    for choice in ("", "auto", "native"):
        done = script(SAY, MSGEN_CODEC=choice)
        assert (done.stdout, done.stderr) == (f"native native {frame} None\n", "")
    done = script(SAY, MSGEN_CODEC="python")
    assert done.stdout == f"python python {frame} MSGEN_CODEC=python\n"


@pytest.mark.processes
def test_an_unknown_choice_is_an_error() -> None:
    done = script(SAY, MSGEN_CODEC="cython")
    assert (
        "ImportError: MSGEN_CODEC=cython: expected one of auto, python, native; unset it for auto"
        in done.stderr
    )


# As if it had not been built: the module cannot be found.
WITHOUT = "import sys; sys.modules['msgen.runtime.codec._native'] = None;"


@pytest.mark.processes
def test_without_the_extension_python_serves() -> None:
    done = script(WITHOUT + SAY, MSGEN_CODEC="auto")
    assert done.stdout.startswith("python python 91ce")
    assert "it was not built here (" in done.stdout


@pytest.mark.processes
def test_insisting_on_the_engine_that_is_not_there_is_an_error() -> None:
    done = script(WITHOUT + SAY, MSGEN_CODEC="native")
    assert (
        "ImportError: MSGEN_CODEC=native, but the compiled codec cannot be loaded: "
        in done.stderr
    )
    assert "install msgen again where a C compiler is" in done.stderr


@pytest.mark.processes
def test_a_torch_without_the_exchange_interface_is_served_in_python_calls() -> None:
    text = """
import torch
del torch.Tensor.__dlpack_c_exchange_api__
from msgen.generated import backend as b, common
params = common.SamplingParams()
for tokens in (0, 3, 5000):
    msg = b.UserMsg(1, torch.arange(tokens, dtype=torch.int32), params)
    frame = b.encode(msg)
    assert frame == b.CODEC._python.encode(msg)
    assert b.decode(frame) == msg
    frames = b.encode_frames(msg, 16)
    assert b.decode_frames(frames) == msg
try:
    b.encode(b.UserMsg(1, torch.arange(3), params))
except Exception as error:
    print(error)
print(b.CODEC.engine)
"""
    done = script(text)
    assert done.stderr == ""
    assert done.stdout == (
        "UserMsg.input_ids: expected tensor[int32, seq], got tensor[int64, 3] (wrong dtype)\n"
        f"{ENGINE}\n"
    )


def test_the_codec_says_its_engine() -> None:
    assert backend.CODEC.engine == ENGINE
    assert f"engine {ENGINE}" in repr(backend.CODEC)
    assert (native_engine.why_not is None) == (ENGINE == "native")


# What Python can do to a message


@pytest.fixture
def modules(tmp_path: Any) -> Iterator[Built]:
    """Classes of its own, since a test patches them."""
    with built(tmp_path, good_schema("everything", tmp_path)) as made:
        yield made


@pytest.fixture
def messages(modules: Built) -> Any:
    return modules.module("everything")


def tiny(messages: Any, **changes: Any) -> Any:
    msg = messages.Tiny(1, "c", 2, 3, 4, 5, 6, ["s"])
    for name, value in changes.items():
        setattr(msg, name, value)
    return msg


def test_a_deleted_slot_is_an_error_with_its_path(messages: Any) -> None:
    msg = tiny(messages)
    del msg.type
    with pytest.raises(EncodeError, match=r"^Tiny\.type: .* attribute is not set"):
        messages.encode(msg)


def test_a_property_put_over_a_field_is_asked(messages: Any) -> None:
    msg = tiny(messages)
    plain = messages.encode(msg)
    slot = messages.Tiny.type
    messages.Tiny.type = property(lambda self: 99)
    patched = messages.encode(msg)
    messages.Tiny.type = slot
    assert messages.encode(msg) == plain
    assert messages.decode(patched) == tiny(messages, type=99)


def test_a_patched_constructor_is_called(messages: Any) -> None:
    frame = messages.encode(tiny(messages))
    made = []
    original = messages.Tiny.__init__

    def init(*args: Any, **kwargs: Any) -> None:  # a field is called self
        made.append(args[0])
        original(*args, **kwargs)

    messages.Tiny.__init__ = init
    assert messages.decode(frame) == tiny(messages)
    assert len(made) == 2  # with the one to compare with
    messages.Tiny.__init__ = original
    assert messages.decode(frame) == tiny(messages)
    assert len(made) == 2


def test_a_constructor_with_other_code_is_called(messages: Any) -> None:
    frame = messages.encode(messages.Nothing())
    made: list[Any] = []
    init = messages.Nothing.__init__
    code = init.__code__
    init.__globals__["made"] = made
    init.__code__ = compile(
        "def told(self): made.append(self)", "told.py", "exec"
    ).co_consts[0]
    messages.decode(frame)
    assert len(made) == 1
    init.__code__ = code
    messages.decode(frame)
    assert len(made) == 1


def test_a_patched_getattr_and_setattr_are_called(messages: Any) -> None:
    msg = tiny(messages)
    frame = messages.encode(msg)
    messages.Tiny.__getattribute__ = lambda self, name: (
        7 if name == "data" else object.__getattribute__(self, name)
    )
    assert messages.decode(messages.encode(msg)).data == 7
    del messages.Tiny.__getattribute__
    seen = []

    def setattr_(self: Any, name: str, value: Any) -> None:
        seen.append(name)
        object.__setattr__(self, name, value)

    messages.Tiny.__setattr__ = setattr_
    messages.decode(frame)
    assert "data" in seen
    del messages.Tiny.__setattr__
    seen.clear()
    assert messages.decode(frame) == msg
    assert seen == []


def test_a_patched_base_class_counts_as_well(messages: Any) -> None:
    msg = tiny(messages)
    base = messages.Tiny.__mro__[1]
    base.__setattr__ = lambda self, name, value: object.__setattr__(
        self, name, 50 if name == "data" else value
    )
    assert messages.decode(messages.encode(msg)).data == 50
    del base.__setattr__
    assert messages.decode(messages.encode(msg)) == msg


def test_adding_a_method_changes_nothing(messages: Any) -> None:
    msg = tiny(messages)
    strict = strict_engine(messages.CODEC) if NATIVE else messages.CODEC
    for number in range(3):
        messages.Tiny.extra = lambda self, number=number: number
        assert strict.decode(strict.encode(msg)) == msg
        assert msg.extra() == number


def test_a_finalizer_added_later_runs_once_for_each(messages: Any) -> None:
    frame = messages.encode(tiny(messages))
    ended = []
    messages.Tiny.__del__ = lambda self: ended.append(self.data)
    for _ in range(300):
        messages.decode(frame)
    assert ended == [3] * 300
    del messages.Tiny.__del__
    messages.decode(frame)
    assert len(ended) == 300


def test_a_message_can_be_resurrected(messages: Any) -> None:
    frame = messages.encode(tiny(messages))
    kept = []
    messages.Tiny.__del__ = lambda self: kept.append(self)
    for _ in range(10):
        messages.decode(frame)
    del messages.Tiny.__del__
    gc.collect()
    assert kept == [tiny(messages)] * 10
    assert all(map(gc.is_tracked, kept))


def test_memory_of_a_finalized_message_makes_messages_that_are_finalized(
    messages: Any,
) -> None:
    frame = messages.encode(tiny(messages))
    kept, ended = [], []
    messages.Tiny.__del__ = lambda self: kept.append(self)
    for _ in range(10):
        messages.decode(frame)
    del messages.Tiny.__del__
    kept.clear()
    messages.Tiny.__del__ = lambda self: ended.append(1)
    for _ in range(10):
        messages.decode(frame)
    del messages.Tiny.__del__
    assert len(ended) == 10


def test_subclasses_of_every_kind_are_freed_in_order(messages: Any) -> None:
    freed = []

    class Plain(messages.Tiny):  # type: ignore[misc]
        def __del__(self) -> None:
            freed.append("plain")

    class More(messages.Tiny):  # type: ignore[misc]
        __slots__ = ("__weakref__", "more")

    class Deep(Plain):
        __slots__ = ("deeper",)

    values = (1, "c", 2, 3, 4, 5, 6, ["s"])
    for cls in (Plain, More, Deep):
        before = sys.getrefcount(cls)
        for _ in range(600):
            made = cls(*values)
            made.more = [object()]
            assert messages.decode(messages.encode(made)) == tiny(messages)
            del made
        assert sys.getrefcount(cls) == before
    assert freed == ["plain"] * 1200
    watched = More(*values)
    reference = weakref.ref(watched)
    del watched
    assert reference() is None


def test_decoded_messages_are_like_any_other(messages: Any) -> None:
    msg = tiny(messages)
    decoded = messages.decode(messages.encode(msg))
    assert gc.is_tracked(decoded)
    assert copy.copy(decoded) == copy.deepcopy(decoded) == decoded
    loaded = pickle.loads(pickle.dumps(user()))
    assert loaded == user()


def test_the_collector_finds_decoded_messages(messages: Any) -> None:
    decoded = messages.decode(messages.encode(tiny(messages)))
    decoded.str.append(decoded)  # a cycle
    del decoded
    gc.collect()
    left = [each for each in gc.get_objects() if type(each) is messages.Tiny]
    assert left == []


def test_a_class_can_be_changed_under_an_instance(messages: Any) -> None:
    class Other(messages.Tiny):  # type: ignore[misc]
        __slots__ = ()

    decoded = messages.decode(messages.encode(tiny(messages)))
    decoded.__class__ = Other
    assert messages.decode(messages.encode(decoded)) == tiny(messages)
    decoded.__class__ = messages.Tiny
    assert decoded == tiny(messages)


def test_a_long_chain_of_messages_is_freed(messages: Any) -> None:
    chain = messages.Recursive(inner=None, many=[], node=None)
    for _ in range(200_000):
        chain = messages.Recursive(inner=chain, many=[], node=None)
    with pytest.raises(EncodeError, match="nested more than 64 levels"):
        messages.encode(chain)
    del chain


def test_a_parameter_is_a_tensor() -> None:
    weights = torch.nn.Parameter(
        torch.arange(3, dtype=torch.int32), requires_grad=False
    )
    msg = user()
    msg.input_ids = weights
    assert backend.encode(msg) == backend.encode(user())


@native_only
def test_valid_messages_never_go_through_python() -> None:
    for codec, msg in (
        (backend.CODEC, user()),
        (backend.CODEC, user(100_000)),
        (backend.CODEC, backend.BatchBackendMsg([user(), backend.ExitMsg()])),
        (tokenizer.CODEC, tokenizer.DetokenizeMsg(1, 2, True)),
    ):
        strict = strict_engine(codec)
        assert strict.decode(strict.encode(msg)) == msg
        assert strict.decode_frames(strict.encode_frames(msg)) == msg
        with pytest.raises(GaveUp):
            strict.encode(object())


@native_only
def test_what_the_engine_refuses_goes_straight_to_the_table_codec(
    messages: Any,
) -> None:
    """The generated functions are not asked in between: two attempts, not three."""
    codec = messages.CODEC
    frame = codec.encode(tiny(messages))

    def asked(*_: Any) -> Any:
        raise GaveUp

    for functions in (codec._python._encoders, codec._python._decoders):
        for key in functions:
            functions[key] = asked
    with pytest.raises(GaveUp):
        codec._python.encode(tiny(messages))
    with pytest.raises(EncodeError, match=r"^Tiny\.data: expected int"):
        codec.encode(tiny(messages, data="text"))
    with pytest.raises(EncodeError, match=r"^Tiny\.data: expected int"):
        codec.encode_frames(tiny(messages, data="text"), 1)
    assert codec.encode(tiny(messages, data=np.int64(3))) == frame
    for call, argument in (
        (codec.decode, frame[:-1]),
        (codec.decode_frames, [frame[:-1]]),
    ):
        with pytest.raises(DecodeError):
            call(argument)
    with pytest.raises(DecodeError):
        codec.decode_received(frame[:-1], list)


# A tensor subclass is asked in Python, and that code can do anything


class Meddler(torch.Tensor):
    """Runs a function whenever torch is asked something of it."""

    meddle: Any = None

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        meddle, Meddler.meddle = Meddler.meddle, None
        if meddle is not None:
            meddle()
        return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[no-untyped-call]


def tensors(messages: Any, **changes: Any) -> Any:
    values: dict[str, Any] = {
        "ids": torch.arange(2000, dtype=torch.int32),
        "pos": torch.arange(2000),
        "mask": None,
        "scalar": torch.tensor(1.0, dtype=torch.float64),
        "fixed": torch.zeros(2, 3, dtype=torch.bfloat16),
        "fixed1": torch.zeros(4, dtype=torch.uint8),
        "anyd": torch.zeros(3),
        "anyr": torch.zeros(2),
        "any2": torch.zeros(2),
        "lst": [torch.zeros(5, dtype=torch.float16)],
        "lim": torch.zeros(3, dtype=torch.int8),
        "mp": {},
    }
    return messages.Tensors(**{**values, **changes})


@pytest.mark.parametrize("size", [0, 16])
def test_what_was_read_before_python_runs_is_safe(messages: Any, size: int) -> None:
    """The memory of an earlier tensor is taken away while a later one is asked."""
    msg = tensors(messages)
    expected = messages.encode(msg)
    msg.anyr = torch.zeros(2).as_subclass(Meddler)
    storage = msg.ids.untyped_storage()
    Meddler.meddle = lambda: storage.resize_(size)
    assert messages.encode(msg) == expected


def test_a_list_that_changes_while_it_is_written_is_safe(messages: Any) -> None:
    items = [torch.zeros(5, dtype=torch.float16).as_subclass(Meddler) for _ in range(9)]
    msg = tensors(messages, lst=items)
    Meddler.meddle = items.clear
    assert messages.decode(messages.encode(msg)).lst == []
    msg.lst = [torch.zeros(5, dtype=torch.float16).as_subclass(Meddler)]
    Meddler.meddle = lambda: setattr(msg, "lst", [])
    assert len(messages.decode(messages.encode(msg)).lst) < 2


def test_calls_inside_calls_are_safe(messages: Any) -> None:
    msg = tensors(messages, anyr=torch.zeros(2).as_subclass(Meddler))
    expected = messages.encode(msg)
    inner = []
    Meddler.meddle = lambda: inner.append(messages.encode(tensors(messages)))
    assert messages.encode(msg) == expected
    assert inner == [expected]


@pytest.mark.parametrize("call", ["encode", "encode_frames"])
def test_a_message_that_took_the_slow_path_is_freed_at_once(
    messages: Any, call: str
) -> None:
    class Watched(messages.Tiny):  # type: ignore[misc]
        __slots__ = ("__weakref__",)

    gc.disable()
    try:
        msg = Watched(1, "c", 2, 3, 4, 5, 6, [])
        reference = weakref.ref(msg)
        getattr(messages, call)(msg)
        del msg
        assert reference() is None
    finally:
        gc.enable()


def test_errors_that_end_the_program_pass_through(messages: Any) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    msg = tensors(messages, anyr=torch.zeros(2).as_subclass(Meddler))
    Meddler.meddle = interrupt
    with pytest.raises(KeyboardInterrupt):
        messages.encode(msg)


# Memory and threads


def test_reference_counts_stay_flat(messages: Any) -> None:
    codec = messages.CODEC
    msgs = [tiny(messages), tensors(messages), messages.Nothing()]
    frames = [codec.encode(msg) for msg in msgs]
    broken = [frame[:-1] for frame in frames]
    watched = [messages.Tiny, messages.Tensors, None, True, 5, "", messages.encode]

    def counts() -> list[int]:
        return [sys.getrefcount(each) for each in watched]

    def work(rounds: int) -> None:
        for _ in range(rounds):
            for msg, frame in zip(msgs, frames):
                codec.encode(msg)
                codec.decode(frame)
                codec.decode_frames(codec.encode_frames(msg, 64))

    def fail(rounds: int) -> None:
        for _ in range(rounds):
            for frame in broken:
                with pytest.raises(DecodeError):
                    codec.decode(frame)

    work(100)
    fail(100)
    gc.collect()
    before, blocks = counts(), sys.getallocatedblocks()
    work(MESSAGES // 12)
    fail(MESSAGES // 300)
    gc.collect()
    after = counts()
    assert max(abs(one - other) for one, other in zip(before, after)) < 20
    assert sys.getallocatedblocks() - blocks < 500


def test_threads_encode_and_decode_at_once() -> None:
    errors: list[BaseException] = []
    barrier = threading.Barrier(4)

    def work(number: int) -> None:
        msg = user(3 + number * 400_000)  # some above the size that lets others run
        batch = backend.BatchBackendMsg([msg, backend.AbortBackendMsg(number)] * 3)
        try:
            barrier.wait(GENEROUS)
            for _ in range(40):
                assert backend.decode(backend.encode(batch)) == batch
                assert backend.decode_frames(backend.encode_frames(msg)) == msg
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(GENEROUS)
    assert errors == []


def test_a_message_that_another_thread_changes_is_safe() -> None:
    items: list[Any] = [user(), backend.ExitMsg(), user(50_000)]
    batch = backend.BatchBackendMsg(items)
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            items.append(user())
            items[:2] = [backend.AbortBackendMsg(1)]
            items.clear()
            items.extend([user(), backend.ExitMsg(), user(300_000)])

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(500):
            assert isinstance(backend.decode(backend.encode(batch)), type(batch))
    finally:
        stop.set()
        thread.join(GENEROUS)


@pytest.mark.processes
@native_only
def test_large_copies_let_other_threads_run() -> None:
    """While a copy is under way another thread gets the interpreter: it counts meanwhile."""
    text = """
import sys, threading, torch
from msgen.generated import backend as b, common
sys.setswitchinterval(1000)  # nobody gives way unasked
msg = b.UserMsg(1, torch.zeros(1 << 26, dtype=torch.int32), common.SamplingParams())
frame = b.encode(msg)
seen = [0]
go, stop = threading.Event(), threading.Event()
def count():
    go.set()
    while not stop.is_set():
        seen[0] += 1
        stop.wait(0.0001)  # gives way, and must come back while the other copies
thread = threading.Thread(target=count)
thread.start()
go.wait()
for name, call, argument in (("encode", b.encode, msg), ("decode", b.decode, frame)):
    before = seen[0]
    for _ in range(200):
        call(argument)
        if seen[0] > before + 2:
            break
    print(name, seen[0] > before + 2)
stop.set()
thread.join()
"""
    assert script(text).stdout == "encode True\ndecode True\n"


def test_decoding_makes_no_room_for_what_is_not_there(messages: Any) -> None:
    """Wherever an array or a map announces more items than there are bytes, it is refused."""
    good = messages.encode(tiny(messages))
    for code in (b"\xdd\xff\xff\xff\xff", b"\xdc\xff\xff", b"\xdf\xff\xff\xff\xff"):
        for position in range(1, len(good)):
            with pytest.raises(DecodeError):
                messages.decode(good[:position] + code)


# What an attack found


def both(codec: Any, call: str, argument: Any) -> Outcome:
    """Return what both engines give, which is the same."""
    native = outcome(getattr(codec, call), argument)
    assert native == outcome(getattr(codec._python, call), argument)
    return native


@pytest.fixture
def small(tmp_path: Any) -> Iterator[Any]:
    """A group with a tensor of any kind, and a dict whose keys are enum members."""
    text = """
group: small
receiver: r
enums:
  Reason: {values: {one: 1, other: 2}, unknown: other}
messages:
  Anything: {tag: 1, fields: {value: "tensor[any, *]"}}
  Counts: {tag: 2, fields: {counts: "dict[Reason, int]"}}
"""
    schema = write_schema(tmp_path / "schema", {"small.yaml": text})
    with built(tmp_path, schema) as made:
        yield made.module("small")


def with_slots(module: Any, tag: int, *slots: Any) -> bytes:
    header = module.CODEC._table_codec.prefix | tag
    return bytes(msgpack.packb([header, *slots]))


def test_of_equal_keys_the_last_wins_in_both(small: Any) -> None:
    data = with_slots(small, 2, {1: 0})
    assert data[-3:] == b"\x81\x01\x00"
    data = data[:-3] + b"\x83\x05\x0a\x06\x14\x05\x1e"  # {5: 10, 6: 20, 5: 30}
    value = both(small.CODEC, "decode", data).value
    assert value == small.Counts({small.Reason.other: 20})


@pytest.mark.parametrize(
    "shape", [[0, 2**58, 2**58], [2**58, 0, 2**58], [2**62, 0], [0, 2**63 - 1]]
)
def test_sizes_beside_a_zero_may_be_beyond_counting(
    small: Any, shape: list[int]
) -> None:
    both(small.CODEC, "decode", with_slots(small, 1, [11, *shape, b""]))


def test_a_tensor_without_memory_is_an_error(small: Any) -> None:
    zeros = torch._efficientzerotensor((70,))
    error = both(small.CODEC, "encode", small.Anything(zeros)).error
    assert isinstance(error, EncodeError)


def test_sizes_that_are_no_ints_are_left_to_python(small: Any) -> None:
    class Odd(torch.Tensor):
        @property
        def shape(self) -> Any:  # type: ignore[override]
            return (np.int64(3),)

    tensor = torch.arange(3).as_subclass(Odd)
    assert isinstance(
        both(small.CODEC, "encode", small.Anything(tensor)).error, EncodeError
    )


class Meddling(TorchFunctionMode):
    """Hears of every call of torch, and does something at the first."""

    def __init__(self, act: Any) -> None:
        self.act = act

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        act, self.act = self.act, None
        if act is not None:
            act()
        return func(*args, **(kwargs or {}))


def test_memory_can_be_taken_away_under_a_mode(messages: Any) -> None:
    msg = tensors(messages)
    expected = messages.encode(msg)
    with Meddling(lambda: None):
        assert messages.encode(msg) == expected
    storage = msg.pos.untyped_storage()
    with Meddling(lambda: storage.resize_(8)), pytest.raises(EncodeError):
        messages.encode(msg)


def test_other_threads_may_look_at_everything_while_one_decodes(messages: Any) -> None:
    """The collector knows no list that is not complete."""
    halves = [torch.zeros(1 << 20, dtype=torch.float16) for _ in range(4)]
    frame = messages.encode(tensors(messages, lst=halves))
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            for each in gc.get_objects():
                if type(each) in (list, tuple) and len(each) == 4:
                    list(each)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for _ in range(20):
            assert len(messages.decode(frame).lst) == 4
    finally:
        stop.set()
        thread.join(GENEROUS)


def test_a_tensor_may_get_other_memory_while_it_is_copied() -> None:
    msg = user(1 << 20)
    zeros, ones = torch.zeros(1 << 20).int(), torch.ones(1 << 20).int()
    stop = threading.Event()

    def exchange() -> None:
        while not stop.is_set():
            msg.input_ids.data = zeros.clone()
            msg.input_ids.data = ones.clone()

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        for _ in range(100):
            decoded = backend.decode(backend.encode(msg))
            assert isinstance(decoded, backend.UserMsg)
            assert decoded.input_ids.numel() == 1 << 20
    finally:
        stop.set()
        thread.join(GENEROUS)

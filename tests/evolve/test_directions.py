"""Which direction breaks, case by case, with the message that shows it.

Each case changes one thing that the fingerprint does not see. In the direction that diff calls
broken, the message is refused or read as another one; in the other it is read as it was meant.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from building import Built, built_in_memory
from msgen.codegen.evolve import BROKEN, OK
from msgen.codegen.evolve.findings import diff
from msgen.codegen.schema.loader import load_files
from msgen.runtime import DecodeError

BASE = """
group: jobs
receiver: worker
senders: [api]
version: 2
batch: {name: BatchJobsMsg, tag: 9}
messages:
  Job:
    tag: 1
    fields:
      uid: int
      ids: {type: "tensor[int32, n]?", default: null}
      mask: {type: "tensor[int32, m]?", default: null}
      many: {type: "list[tensor[int32, _]]", default: []}
      text: {type: str, default: "", max_len: 5}
      weight: {type: float, default: 0.0}
      kinds: {type: "dict[Kind, int]", default: {}}
      kind: {type: Kind, default: small}
      small: {type: u8, default: 0, since: 2}
      flag: {type: bool, default: true, since: 2}
      data: {type: bytes, default: "", since: 2}
      plain: {type: any, default: null, since: 2}
      maybe: {type: "int?", default: null, since: 2}
      both: {type: "int | str", default: 0, since: 2}
      inner: {type: Inner, default: {}, since: 2}
      parts: {type: "list[Job | Stop]", default: [], since: 2}
      single: {type: f32, default: 0.0, since: 2}
      grid: {type: "tensor[int32, 2, _]?", default: null, since: 2}
      wide: {type: "tensor[int32, *]?", default: null, since: 2}
      pair: {type: "tuple[int, int]", default: [0, 0], since: 2}
  Stop: {tag: 2, since: 2}
structs:
  Inner:
    fields:
      left: {type: int, default: 0}
      right: {type: int, default: 0}
      strict: {type: Strict, default: a}
enums:
  Kind: {values: {small: 0, large: 1}, unknown: small}
  Strict: {values: {a: 0, b: 1}}
"""


@dataclass(frozen=True)
class Case:
    """A change, and what it does.

    Attributes:
        new: what stands in the place of ``old`` in the new version.
        ways: new readers of old messages, old readers of new messages.
        values: fields of the old and of the new message that show it, by the writer's module.
    """

    rule: str
    old: str
    new: str
    ways: tuple[str, str]
    old_values: Callable[[Any], dict[str, Any]]
    new_values: Callable[[Any], dict[str, Any]]


def ints(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.int32)


def nothing(_: Any) -> dict[str, Any]:
    return {}


NEW_FAILS, OLD_FAILS, BOTH_FAIL, FINE = (
    (BROKEN, OK),
    (OK, BROKEN),
    (BROKEN, BROKEN),
    (OK, OK),
)

CASES = {
    "two dimensions tied": Case(
        "DIM_SYMBOL_TIGHTENED",
        "tensor[int32, m]?", "tensor[int32, n]?", NEW_FAILS,
        lambda _: {"ids": ints(1), "mask": ints(1, 2)},
        lambda _: {"ids": ints(1), "mask": ints(2)},
    ),
    "dimensions of one list tied": Case(
        "DIM_SYMBOL_TIGHTENED",
        "list[tensor[int32, _]]", "list[tensor[int32, k]]", NEW_FAILS,
        lambda _: {"many": [ints(1), ints(1, 2)]},
        lambda _: {"many": [ints(1), ints(2)]},
    ),
    "a list's dimension tied to a field's": Case(
        "DIM_SYMBOL_TIGHTENED",
        "list[tensor[int32, _]]", "list[tensor[int32, n]]", NEW_FAILS,
        lambda _: {"many": [ints(1)], "ids": ints(1, 2)},
        lambda _: {"many": [ints(1)], "ids": ints(2)},
    ),
    "number as a key, with unknown": Case(
        "ENUM_VALUE_ADDED",
        "large: 1}", "large: 1, huge: {value: 2, since: 2}, vast: {value: 3, since: 2}}", OLD_FAILS,
        nothing,
        lambda m: {"kinds": {m.Kind.huge: 1, m.Kind.vast: 2}},
    ),
    "number without unknown": Case(
        "ENUM_VALUE_ADDED",
        "b: 1}", "b: 1, c: {value: 2, since: 2}}", OLD_FAILS,
        nothing,
        lambda m: {"inner": m.Inner(strict=m.Strict.c)},
    ),
    "members swapped where the fingerprint does not look": Case(
        "ENUM_VALUE_RENUMBERED",
        "{a: 0, b: 1}", "{a: 1, b: 0}", BOTH_FAIL,
        lambda m: {"inner": m.Inner(strict=m.Strict.b)},
        lambda m: {"inner": m.Inner(strict=m.Strict.b)},
    ),
    "limit tightened": Case(
        "LIMIT_TIGHTENED", "max_len: 5", "max_len: 4", NEW_FAILS,
        lambda _: {"text": "12345"}, lambda _: {"text": "1234"},
    ),
    "limit gone": Case(
        "LIMIT_LOOSENED", ", max_len: 5", "", OLD_FAILS,
        lambda _: {"text": "12345"}, lambda _: {"text": "123456"},
    ),
    "finite": Case(
        "LIMIT_TIGHTENED", "float, default: 0.0", "float, default: 0.0, finite: true", NEW_FAILS,
        lambda _: {"weight": float("inf")}, lambda _: {"weight": 1.5},
    ),
    "integer widened": Case(
        "INT_CHANGED", "type: u8", "type: u16", OLD_FAILS,
        lambda _: {"small": 255}, lambda _: {"small": 256},
    ),
    "integer narrowed": Case(
        "INT_CHANGED", "small: {type: u8", "small: {type: i8", BOTH_FAIL,
        lambda _: {"small": 255}, lambda _: {"small": -1},
    ),
    "float widened": Case(
        "FLOAT_CHANGED", "type: f32", "type: float", OLD_FAILS,
        lambda _: {"single": 1.5}, lambda _: {"single": 1e300},
    ),
    "anything instead of a number": Case(
        "FIELD_RETYPED", "small: {type: u8", "small: {type: any", OLD_FAILS,
        lambda _: {"small": 7}, lambda _: {"small": "text"},
    ),
    "anything instead of bytes, which may be in a frame": Case(
        "FIELD_RETYPED", "data: {type: bytes", "data: {type: any", BOTH_FAIL,
        lambda _: {"data": b"x" * 100}, lambda _: {"data": "text"},
    ),
    "a number instead of anything": Case(
        "FIELD_RETYPED", "plain: {type: any, default: null", "plain: {type: int, default: 0", NEW_FAILS,
        lambda _: {"plain": "text"}, lambda _: {"plain": 7},
    ),
    "nullable": Case(
        "NULLABLE_CHANGED", "flag: {type: bool", "flag: {type: bool?", OLD_FAILS,
        lambda _: {"flag": False}, lambda _: {"flag": None},
    ),
    "no longer nullable": Case(
        "NULLABLE_CHANGED", '"int?", default: null', "int, default: 5", NEW_FAILS,
        lambda _: {"maybe": None}, lambda _: {"maybe": 7},
    ),
    "an alternative more": Case(
        "UNION_CHANGED", "int | str", "int | str | bool", OLD_FAILS,
        lambda _: {"both": "x"}, lambda _: {"both": True},
    ),
    "an alternative less": Case(
        "UNION_CHANGED", "int | str", "int | bool", BOTH_FAIL,
        lambda _: {"both": "x"}, lambda _: {"both": True},
    ),
    "bytes become one of two, and a frame's index a number": Case(
        "UNION_CHANGED", "data: {type: bytes, default: ''", "data: {type: 'bytes | int', default: 0", BOTH_FAIL,
        lambda _: {"data": b"x" * 100}, lambda _: {"data": 7},
    ),
    "a message more among messages": Case(
        "UNION_EXTENDED",
        'list[Job | Stop]", default: [], since: 2}',
        'list[Job | Stop | Wait]", default: [], since: 2}', OLD_FAILS,
        lambda m: {"parts": [m.Stop()]}, lambda m: {"parts": [m.Wait()]},
    ),
    "a dimension fixed": Case(
        "DIM_CHANGED", "tensor[int32, 2, _]", "tensor[int32, 2, 3]", NEW_FAILS,
        lambda _: {"grid": torch.ones(2, 4, dtype=torch.int32)},
        lambda _: {"grid": torch.ones(2, 3, dtype=torch.int32)},
    ),
    "any rank instead of two": Case(
        "RANK_CHANGED", "tensor[int32, 2, _]", "tensor[int32, *]", OLD_FAILS,
        lambda _: {"grid": torch.ones(2, 4, dtype=torch.int32)}, lambda _: {"grid": ints(1)},
    ),
    "one rank instead of any, which is written another way": Case(
        "RANK_CHANGED", "tensor[int32, *]", "tensor[int32, _]", BOTH_FAIL,
        lambda _: {"wide": ints(1)}, lambda _: {"wide": ints(1)},
    ),
    "another dtype of one size": Case(
        "DTYPE_CHANGED", "tensor[int32, 2, _]", "tensor[float32, 2, _]", BOTH_FAIL,
        lambda _: {"grid": torch.ones(2, 1, dtype=torch.int32)},
        lambda _: {"grid": torch.ones(2, 1, dtype=torch.float32)},
    ),
    "a list instead of a tuple": Case(
        "FIELD_RETYPED", "tuple[int, int]", "list[int]", BOTH_FAIL,
        lambda _: {"pair": (1, 2)}, lambda _: {"pair": [1, 2, 3]},
    ),
    "a required field removed": Case(
        "FIELD_REMOVED", "uid: int", "uid: {type: int, removed: true}", OLD_FAILS,
        nothing, nothing,
    ),
    "a field with a default removed": Case(
        "FIELD_REMOVED", "flag: {type: bool,", "flag: {type: bool, removed: true,", FINE,
        nothing, nothing,
    ),
    "fields of a struct that only a later field holds, swapped": Case(
        "FIELD_MOVED",
        "left: {type: int, default: 0}\n      right:", "right: {type: int, default: 0}\n      left:", BOTH_FAIL,
        lambda m: {"inner": m.Inner(left=1, right=2)},
        lambda m: {"inner": m.Inner(left=1, right=2)},
    ),
    "a field of such a struct retyped": Case(
        "FIELD_RETYPED", "right: {type: int, default: 0}", "right: {type: str, default: ''}", BOTH_FAIL,
        lambda m: {"inner": m.Inner(right=2)}, lambda m: {"inner": m.Inner(right="x")},
    ),
    "a field appended to such a struct without since": Case(
        "FIELD_ADDED_WITHOUT_SINCE",
        "strict: {type: Strict, default: a}", "strict: {type: Strict, default: a}\n      more: {type: int, default: 1}", NEW_FAILS,
        nothing, nothing,
    ),
    "the last field deleted": Case(
        "FIELD_DELETED",
        '      pair: {type: "tuple[int, int]", default: [0, 0], since: 2}\n', "", FINE,
        lambda _: {"pair": (1, 2)}, nothing,
    ),
    "a later field deleted": Case(
        "FIELD_DELETED", "      flag: {type: bool, default: true, since: 2}\n", "", BOTH_FAIL,
        lambda _: {"flag": False, "data": b"x"}, lambda _: {"data": b"x"},
    ),
    "another field in the slot of a later one": Case(
        "FIELD_RENAMED_WITHOUT_WAS", "flag: {type: bool", "other: {type: bool", BOTH_FAIL,
        lambda _: {"flag": False}, lambda _: {"other": False},
    ),
    "another type in the slot of a later one": Case(
        "SLOT_REUSED", "flag: {type: bool, default: true", "other: {type: str, default: x", BOTH_FAIL,
        lambda _: {"flag": False}, lambda _: {"other": "y"},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def build() -> Iterator[Callable[[str], Built]]:
    made: dict[str, Built] = {}
    with ExitStack() as stack:

        def make(text: str) -> Built:
            if text not in made:
                schema = load_files("schema", "schema", {"jobs.yaml": text.encode()})
                made[text] = stack.enter_context(built_in_memory(schema))
            return made[text]

        yield make


def text_of(case: Case) -> str:
    old = case.old.replace("default: ''", 'default: ""')
    assert old in BASE, case.old
    text = BASE.replace(old, case.new, 1)
    if "Wait" in case.new:
        text = text.replace("  Stop: {", "  Wait: {tag: 3, since: 2}\n  Stop: {")
    return text


def send(writer: Any, values: dict[str, Any]) -> Any:
    if "uid" in writer.Job.__slots__:
        values = {"uid": 1, **values}
    return writer.Job(**values)


def is_read(writer: Any, reader: Any, msg: Any) -> bool:
    """Say whether a message arrives with the values that it was sent with, whole and in frames."""
    for frames in (
        writer.encode_frames(msg, threshold=1 << 20),
        writer.encode_frames(msg, threshold=64),
    ):
        try:
            got = reader.decode_frames(frames)
        except DecodeError:
            return False
        for name in set(msg.__slots__) ^ set(got.__slots__):
            holder = msg if name in msg.__slots__ else got
            if holder is got and getattr(got, name) != getattr(
                reader.Job(**({"uid": 0} if "uid" in got.__slots__ else {})), name
            ):
                return False  # a field that was not sent has its default
        for name in set(msg.__slots__) & set(got.__slots__):
            if plain(getattr(msg, name)) != plain(getattr(got, name)):
                return False
    return True


def plain(value: Any) -> Any:
    """Values by their names, whichever module made them."""
    if isinstance(value, torch.Tensor):
        return (value.dtype, value.tolist())
    if isinstance(value, enum.IntEnum):
        return value.name
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, [plain(item) for item in value])
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if hasattr(value, "__slots__") and type(value).__module__.startswith("_generated"):
        return {
            name: plain(getattr(value, name))
            for name in value.__slots__
            if name != "more"
        }
    return (type(value).__name__, value)


@pytest.mark.parametrize("name", CASES)
def test_the_direction_is_the_one_that_breaks(
    name: str, build: Callable[[str], Built]
) -> None:
    case = CASES[name]
    old, new = build(BASE), build(text_of(case))
    found = diff(old.schema, new.schema)
    (finding, *_) = [
        each for each in found.findings if each.change.rule.id == case.rule
    ]
    assert (finding.new_reads_old, finding.old_reads_new) == case.ways
    assert [each.same_fingerprint for each in found.verdicts] == [True]
    before, after = old.module("jobs"), new.module("jobs")
    sent_old = send(before, case.old_values(before))
    sent_new = send(after, case.new_values(after))
    read = (is_read(before, after, sent_old), is_read(after, before, sent_new))
    assert read == (case.ways[0] == OK, case.ways[1] == OK)


def test_nothing_changed_is_read_both_ways(build: Callable[[str], Built]) -> None:
    jobs = build(BASE).module("jobs")
    for case in CASES.values():
        assert is_read(jobs, jobs, send(jobs, case.old_values(jobs)))

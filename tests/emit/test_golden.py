"""Golden modules: all that is generated from the schemas of `golden/good`, as the pages show it."""

from __future__ import annotations

import sys
import typing
from pathlib import Path

import pytest
from building import built
from golden import cases, good_schema
from msgen.codegen import generate, load_schema
from msgen.codegen.history.layouts import load_layouts
from msgen.generated import backend

NAMES = list(cases("good"))


@pytest.mark.parametrize("name", NAMES)
def test_the_output_is_the_golden_one(name: str, tmp_path: Path) -> None:
    folder = good_schema(name, tmp_path)
    files = generate(load_schema(folder), load_layouts(folder))
    cases("good")[name].check_files("generated/", files)


@pytest.mark.parametrize("name", NAMES)
def test_the_output_can_be_imported(tmp_path: Path, name: str) -> None:
    with built(tmp_path, good_schema(name, tmp_path)) as modules:
        for group in modules.schema.groups.values():
            module = modules.module(group.name)
            assert hasattr(module, "CODEC") == bool(group.live_messages)
            for record in group.records:
                fields = getattr(module, record.name).__dataclass_fields__
                assert list(fields) == [field.name for field in record.live_fields]


def test_type_hints_can_be_read_at_run_time(tmp_path: Path) -> None:
    with built(tmp_path, good_schema("everything", tmp_path)) as modules:
        module = modules.module("everything")
        hints = typing.get_type_hints(module.Scalars)
        assert (hints["a"], hints["k"], hints["n"]) == (bool, float, bytes)
        assert typing.get_type_hints(module.Tiny)["int"] is int


def test_a_required_field_after_a_default_is_given_by_keyword(tmp_path: Path) -> None:
    with built(tmp_path, good_schema("shared-only", tmp_path)) as modules:
        types = modules.module("types")
        pair = types.Pair(left=1, third="x")
        assert (pair.left, pair.right, pair.third) == (1, 0, "x")
        with pytest.raises(TypeError):
            types.Pair(1, 2, "x")
        assert types.Empty() == types.Empty()


def test_mutable_defaults_are_fresh(tmp_path: Path) -> None:
    with built(tmp_path, good_schema("collisions", tmp_path)) as modules:
        main = modules.module("main")
        make = {"bytes": b"", "frames": [], "slots": 1, "msg": None, "wire": None}
        make |= {"torch": None, "dataclass": True, "builtins": 0.0, "math": 0.0}
        make |= {"item": [], "item_2": [], "len": 1}
        first, second = main.Unfit(**make), main.Unfit(**make)
        first.list.append(1)
        first.more["k"] = []
        assert (second.list, second.more) == ([], {})


def test_defaults_are_what_the_schema_says(tmp_path: Path) -> None:
    with built(tmp_path, good_schema("defaults", tmp_path)) as modules:
        defaults = modules.module("defaults")
        early = defaults.Early()
        assert early.late == defaults.Late()
        assert early.given == defaults.Late(x=5)
        late = early.late
        assert (late.huge, late.tiny) == (1e16, -1e-7)
        assert late.empties == (True, [{}], [])
        assert late.table == {defaults.Kind.a: []}
        assert (late.text, late.quotes, late.raw) == (
            [],
            "both \" and ' in it",
            "é\n".encode(),
        )
        early.late.lists[0].append("x")
        assert defaults.Early().late.lists == [[], ["a"]]


def test_defaults_reach_structs_of_groups_further_away(tmp_path: Path) -> None:
    with built(tmp_path, good_schema("transitive", tmp_path)) as modules:
        main, c = modules.module("main"), modules.module("c")
        msg = main.Msg(inner=main.Inner(z="own"))
        assert msg.outer.inner == c.Inner(x=1)
        assert msg.outer.final == c.Final(y=2)
        assert main.decode(main.encode(msg)) == msg


def test_names_of_the_generators_own_kind_do_no_harm(tmp_path: Path) -> None:
    with built(tmp_path, good_schema("aliases", tmp_path)) as modules:
        main = modules.module("main")
        record = main.Bytes(encode_bytes=b"x", decode_bytes=[b"y"])
        slots = main.bytes_to_slots(record, None)
        assert slots == [b"x", [b"y"]]
        assert main.bytes_from_slots(slots, None) == record


def test_messages_are_small_and_closed() -> None:
    msg = backend.AbortBackendMsg(1)
    assert not hasattr(msg, "__dict__")
    with pytest.raises(AttributeError):
        msg.other = 1  # type: ignore[attr-defined]
    assert sys.getsizeof(msg) < 64

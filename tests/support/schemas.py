"""Random schemas: valid ones of every type, with names that are likely to collide.

One generator serves property tests, where hypothesis chooses and shrinks, and samples by seed,
where a random number generator does.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")

FIELD_NAMES = [
    "self",
    "cls",
    "type",
    "field",
    "list",
    "int",
    "str",
    "bytes",
    "float",
    "dict",
    "tuple",
    "bool",
    "data",
    "msg",
    "slots",
    "frames",
    "value",
    "wire",
    "struct",
    "depth",
    "item",
    "key",
    "element",
    "torch",
    "math",
    "inf",
    "any",
    "as_int",
    "isfinite",
    "fit",
    "id",
    "uid",
    "text",
    "encode",
    "decode",
    "table",
    "len",
    "isinstance",
    "other",
    "print",
    "match",
    "case",
    "same",
    "dataclass",
    "dataclasses",
    "as_plain",
    "builtins",
    "name",
    "field_2",
    "item_2",
    "tag",
    "group",
    "a_rather_long_name_that_somebody_thought_was_needed_here",
]
TYPE_NAMES = [
    "Tensor",
    "Any",
    "Field",
    "Codec",
    "Final",
    "Buffer",
    "Unfit",
    "Single",
    "IntEnum",
    "TypeAlias",
    "FrameReader",
    "FrameWriter",
    "Encoders",
    "Decoders",
    "Record",
    "ValueError",
    "Exception",
    "List",
    "Dict",
    "Type",
    "Self",
    "Foo",
    "FooBar",
    "Bar",
    "A",
    "ARatherLongNameThatSomebodyThoughtWasNeededHere",
]
MEMBER_NAMES = [
    "a",
    "b",
    "stop",
    "list",
    "int",
    "type",
    "self",
    "UPPER",
    "lower_case",
    "x1",
]
INTS = ["int", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
DTYPES = [
    "bool",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
]


class Source(Protocol):
    """Where choices come from."""

    def integer(self, low: int, high: int) -> int: ...


class RandomSource:
    """Chooses by a seeded random number generator."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self._random.randint(low, high)


class DrawSource:
    """Lets hypothesis choose."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data

    def integer(self, low: int, high: int) -> int:
        return self._data.draw(st.integers(low, high))


@dataclass
class SchemaMaker:
    """Makes the files of one schema: group `lib` of shared types, group `main` of messages."""

    source: Source
    structs: list[str] = field(default_factory=list)
    enums: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def files(self) -> dict[str, str]:
        """Return file name to YAML text."""
        names = self.sample(TYPE_NAMES, self.source.integer(4, 9))
        shared, own = names[: len(names) // 2], names[len(names) // 2 :]
        lib = self._shared_group(shared)
        main: dict[str, Any] = {
            "group": "main",
            "receiver": "engine",
            "version": 2,
            "imports": ["lib"],
        }
        self.messages = own
        if self.chance(2):
            main["batch"] = {"name": "BatchMain", "tag": 255}
        main["messages"] = {
            name: {"tag": tag, "doc": self.doc(), **self.fields(message=True)}
            for tag, name in enumerate(own)
        }
        # JSON is YAML, and quotes every name.
        return {
            "lib.yaml": json.dumps(lib, ensure_ascii=False),
            "main.yaml": json.dumps(main, ensure_ascii=False),
        }

    def _shared_group(self, names: Sequence[str]) -> dict[str, Any]:
        half = max(1, len(names) // 2)
        lib: dict[str, Any] = {"group": "lib", "version": 2, "enums": {}, "structs": {}}
        for name in names[:half]:
            members = self.sample(MEMBER_NAMES, self.source.integer(1, 4))
            numbers = self.sample(range(-3, 200), len(members))
            lib["enums"][name] = {"values": dict(zip(members, numbers))}
            if self.chance(2):
                lib["enums"][name]["unknown"] = members[0]
            self.enums.append(name)
        for name in names[half:]:
            lib["structs"][name] = {"doc": self.doc(), **self.fields(message=False)}
            self.structs.append(name)
        return lib

    def choice(self, options: Sequence[T]) -> T:
        return options[self.source.integer(0, len(options) - 1)]

    def chance(self, one_in: int) -> bool:
        return self.source.integer(1, one_in) == 1

    def sample(self, options: Sequence[T], count: int) -> list[T]:
        rest = list(options)
        return [
            rest.pop(self.source.integer(0, len(rest) - 1))
            for _ in range(min(count, len(rest)))
        ]

    def doc(self) -> str:
        docs = [
            "Plain.",
            'Ends in "quotes"',
            'Three """ of them.',
            "Back\\slash \\n \\",
            "Ünïcödé 漢字 \U0001f600",
            "Two\n\n  indented\nlines.\n",
            "tab\there",
            "x" * 100,
            " ".join(["word"] * 60),
            "control \x07 char",
        ]
        return self.choice(docs)

    def fields(self, message: bool) -> dict[str, Any]:
        count = self.source.integer(0, 5)
        names = self.sample(FIELD_NAMES, count)
        fields: dict[str, Any] = {}
        appended = False
        for name in names:
            spec: dict[str, Any] = {"type": self.type(2)}
            if self.chance(4):
                spec["doc"] = self.doc()
            if self.chance(8):
                spec["removed"] = True
            default = self.default(spec["type"])
            appended = appended or self.chance(6)
            if appended:
                # Only a field with a default can be appended, so make it nullable otherwise.
                if default is None:
                    nullable = spec["type"].endswith("?") or spec["type"] == "any"
                    spec["type"] += "" if nullable else "?"
                    default = [None]
                spec["since"] = 2
            if default is not None and (appended or self.chance(2)):
                spec["default"] = default[0]
            self._limit(spec)
            fields[name] = spec
        return {"fields": fields} if fields else {}

    def _limit(self, spec: dict[str, Any]) -> None:
        core = spec["type"].removesuffix("?")
        bare = core.partition("[")[0]
        if "|" not in core and bare in ("str", "bytes", "list", "dict", "tensor"):
            if self.chance(4):
                spec["max_len"] = self.source.integer(8, 20)
            if bare == "tensor" and self.chance(4):
                spec["device"] = "worker"
        if core in ("float", "f32") and self.chance(3):
            spec["finite"] = True

    def default(self, type_: str) -> list[Any] | None:
        """Return a default in a list of one, None where the type takes none."""
        if type_.endswith("?"):
            inner = None if "|" in type_ else self.default(type_[:-1])
            return [None] if inner is None or self.chance(2) else inner
        simple: dict[str, Any] = {
            "bool": True,
            "float": 0.5,
            "f32": -1.25,
            "str": self.choice(["", "it's", 'say "x"', "a\\b\n", "é"]),
            "bytes": "raw'\"",
            "any": self.choice([None, 5, [1, "x", None], {"k": [True, 2.5]}]),
        }
        if type_ in INTS:
            return [7]
        if type_ in simple:
            return [simple[type_]]
        if type_.startswith(("list[", "dict[")) and "|" not in type_:
            return [[] if type_[0] == "l" else {}]
        return None

    def type(self, depth: int) -> str:
        """Return a random type expression with at most ``depth`` levels of containers."""
        scalars = [self._scalar, self._scalar, self._named, self._tensor]
        containers = [self._list, self._tuple, self._dict, self._nullable, self._union]
        return self.choice(scalars + (containers if depth else []))(depth - 1)

    def _scalar(self, depth: int) -> str:
        return self.choice([*INTS, "bool", "float", "f32", "str", "bytes", "any"])

    def _named(self, depth: int) -> str:
        if self.structs and self.chance(2):
            return self.choice(self.structs)
        if self.messages and self.chance(3):
            # Through a list, so that a message may hold itself.
            return f"list[{self.choice(self.messages)}]"
        return self.choice(self.enums) if self.enums else "int"

    def _tensor(self, depth: int) -> str:
        dtype = "any" if self.chance(5) else self.choice(DTYPES)
        if self.chance(6):
            return f"tensor[{dtype}, *]"
        dims = [
            self.choice(["n", "m", "_", "2"]) for _ in range(self.choice([0, 1, 1, 2]))
        ]
        return f"tensor[{', '.join([dtype, *dims])}]"

    def _list(self, depth: int) -> str:
        return f"list[{self.type(depth)}]"

    def _tuple(self, depth: int) -> str:
        items = [self.type(depth) for _ in range(self.source.integer(1, 3))]
        return f"tuple[{', '.join(items)}]"

    def _dict(self, depth: int) -> str:
        key = self.choice([*INTS, "str", "str", "bytes", "bool", *self.enums])
        return f"dict[{key}, {self.type(depth)}]"

    def _nullable(self, depth: int) -> str:
        inner = self.type(depth)
        if inner == "any" or inner.endswith("?"):
            return inner
        return f"({inner})?" if "|" in inner.partition("[")[0] else f"{inner}?"

    def _union(self, depth: int) -> str:
        kinds = ["bool", "int", self.choice(["float", "f32"]), "str"]
        kinds.append(self.choice(["bytes", "tensor[int32, n]"]))
        kinds.append(f"dict[str, {self.type(0)}]")
        arrays = [f"list[{self.type(0)}]", "tuple[int, str]", "tensor[any, *]"]
        if self.structs:
            arrays.append(self.choice(self.structs))
        kinds.append(self.choice(arrays))
        options = self.sample(kinds, self.source.integer(2, 4))
        return f"({' | '.join(options)})"

"""Views of tests on plain values: those that msgpack takes and gives as they are.

Encoders and decoders share them, since a list of dicts of strings is the same object on both
sides: it is looked through in place and not rebuilt. What fails a test raises `Unfit`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from msgen.codegen.schema import model
from msgen.codegen.schema.model import Type

from .module import Module


class Check(NamedTuple):
    """Statements that test a variable.

    Attributes:
        kind: `scalar`: no more than the misfit; `any`: the runtime looks through it; `nullable`: what
            is inside, unless it is None; `loop`: what is inside, for all items; `tuple`: what is
            inside, one after the other; `union`: one of the branches.
        misfit: the condition that the value itself does not fit; empty where each will do.
        name: the variable, or what is looped over: `item in items`.
        branches: the alternatives that need more than a look at the class: conditions, and what is
            tested where they hold.
        others: the condition that the value is of no other alternative; empty where there is none.
    """

    kind: str
    misfit: str = ""
    name: str = ""
    inside: tuple[Check, ...] = ()
    branches: tuple[tuple[str, Check], ...] = ()
    others: str = ""


_Loops: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Checker:
    """Makes the checks of one function.

    ``encoding`` says which side this is: objects to be encoded hold enum members and tuples;
    arrays to be decoded hold msgpack's own types only.
    """

    module: Module
    encoding: bool
    _loop_types: dict[str, Type] = field(default_factory=dict)
    """What the function's loop variables hold: one name has one type in a function."""

    def is_plain(self, type_: Type, inline: bool = False) -> bool:
        """Whether values of a type travel unchanged between object and array.

        ``inline`` says that bytes cannot be frames of their own there.
        """
        if isinstance(type_, model.BytesType):
            return inline
        if isinstance(type_, model.FloatType):
            return type_.bits == 64 or not self.encoding
        if isinstance(type_, (model.EnumType, model.TupleType)) and not self.encoding:
            return False
        if isinstance(type_, (model.StructType, model.MessageType, model.TensorType)):
            return False
        if isinstance(type_, model.DictType):
            return self.is_plain(type_.key, True) and self.is_plain(type_.value, inline)
        inline = inline or isinstance(type_, model.UnionType)
        return all(self.is_plain(child, inline) for child in model.children(type_))

    def is_single(self, type_: Type) -> bool:
        """Whether a value is plain but for its floats, which are all of 32 bits."""
        parts = model.walk(type_)
        bits = {part.bits for part in parts if isinstance(part, model.FloatType)}
        return (
            self.encoding
            and bits == {32}
            and not any(isinstance(p, (model.AnyType, model.BytesType)) for p in parts)
            and self.is_plain(model.with_parts(type_, model.FloatType, bits=64))
        )

    def check(self, name: str, type_: Type, loops: _Loops = ()) -> Check:
        """Return the check of a variable; ``loops`` names the variables of the loops around it."""
        tests = self.scalar_tests(name, type_)
        if tests is not None:
            return Check("scalar", " or ".join(tests))
        if isinstance(type_, model.AnyType):
            return Check("any", name=name)
        if isinstance(type_, model.NullableType):
            return self._nullable(name, type_.item, loops)
        if isinstance(type_, model.UnionType):
            return self._union(name, type_, loops)
        class_test = f"type({name}) is not {self.class_of(type_)}"
        return self._container(name, type_, [class_test], loops)

    def known(self, name: str, type_: Type, loops: _Loops = ()) -> Check:
        """Return the check of a variable whose class is tested already."""
        tests = self.scalar_tests(name, type_)
        if tests is not None:
            return Check("scalar", " or ".join(tests[1:]))
        return self._container(name, type_, [], loops)

    def scalar_tests(self, name: str, type_: Type) -> list[str] | None:
        """Return conditions that hold for a misfit, that of its class first; None if no scalar."""
        match type_:
            case model.IntType():
                limits = [self._int_limits(name, type_)]
            case model.FloatType():
                limits = self._float_limits(name, type_)
            case model.StrType() | model.BytesType():
                limits = _too_long(name, type_.max_len)
            case model.BoolType() | model.EnumType():
                limits = []
            case _:
                return None
        return [f"type({name}) is not {self.class_of(type_)}", *limits]

    def _int_limits(self, name: str, type_: model.IntType) -> str:
        low, high = self.int_limits(type_)
        # msgpack's integers are those of i64 and u64: what was unpacked is no less and no more.
        if not self.encoding and type_.width == "i64":
            return f"{name} > {high}"
        if not self.encoding and type_.width == "u64":
            return f"{name} < 0"
        return f"not {low} <= {name} <= {high}"

    def int_limits(self, type_: model.IntType) -> tuple[str, str]:
        names, width = self.module.names, type_.width.upper()
        low = "0" if width[0] == "U" else names[f"{width}_MIN"]
        return low, names[f"{width}_MAX"]

    def _float_limits(self, name: str, type_: model.FloatType) -> list[str]:
        names = self.module.names
        tests = [f"not {names['isfinite']}({name})"] if type_.finite else []
        if type_.bits == 32:
            tests.append(f"{names['F32_MAX']} < abs({name}) < {names['inf']}")
        return tests

    def _nullable(self, name: str, type_: Type, loops: _Loops) -> Check:
        tests = self.scalar_tests(name, type_)
        given = f"{name} is not None and"
        if tests is not None:
            misfit = tests[0] if len(tests) == 1 else f"({' or '.join(tests)})"
            return Check("scalar", f"{given} {misfit}")
        inner = self.check(name, type_, loops)
        if inner.kind == "scalar":  # a union told apart by classes alone
            return Check("scalar", f"{given} {inner.misfit}")
        return Check("nullable", name=name, inside=(inner,))

    def _container(
        self, name: str, type_: Type, tests: list[str], loops: _Loops
    ) -> Check:
        if isinstance(type_, model.TupleType):
            tests.append(f"len({name}) != {len(type_.items)}")
            inside = tuple(
                self.check(f"{name}[{index}]", item, loops)
                for index, item in enumerate(type_.items)
            )
            return Check("tuple", " or ".join(tests), inside=inside)
        assert isinstance(type_, (model.ListType, model.DictType))
        tests += _too_long(name, type_.max_len)
        if isinstance(type_, model.ListType):
            item = self._loop_name("item", type_.item, loops)
            loop = f"{item} in {name}"
            inside = (self.check(item, type_.item, (*loops, item)),)
        else:
            key = self._loop_name("key", type_.key, loops)
            value = self._loop_name("element", type_.value, loops)
            loop = f"{key}, {value} in {name}.items()"
            inside = self._entry(key, value, type_, (*loops, key, value))
        return Check("loop", " or ".join(tests), loop, inside)

    def _entry(
        self, key: str, value: str, type_: model.DictType, loops: _Loops
    ) -> tuple[Check, ...]:
        """Return the checks of a dict's key and value: one where both are scalars."""
        tests = self.scalar_tests(key, type_.key) or []
        more = self.scalar_tests(value, type_.value)
        both = Check("scalar", " or ".join([*tests, *(more or [])]))
        return (both,) if more else (both, self.check(value, type_.value, loops))

    def _loop_name(self, name: str, type_: Type, loops: _Loops) -> str:
        """Return a loop variable that no loop around has, nor one of another type."""
        candidate, number = name, 1
        while candidate in loops or self._loop_types.get(candidate, type_) != type_:
            number += 1
            candidate = f"{name}_{number}"
        self._loop_types[candidate] = type_
        return candidate

    def _union(self, name: str, type_: model.UnionType, loops: _Loops) -> Check:
        branches: list[tuple[str, Check]] = []
        simple: list[str] = []
        for option in type_.options:
            tests = self.scalar_tests(name, option)
            if tests is not None and len(tests) == 1:
                simple += tests
            else:
                test = self.class_test(name, option)
                branches.append((test, self.known(name, option, loops)))
        others = " and ".join(simple)
        if not branches:
            return Check("scalar", others)
        return Check("union", branches=tuple(branches), others=others)

    def class_test(self, name: str, option: Type) -> str:
        """Return the condition that a value is of the class of an alternative."""
        return f"type({name}) is {self.class_of(option)}"

    def class_of(self, option: Type) -> str:
        """Spell the class that values of a type have, on this side."""
        if self.encoding and isinstance(option, (model.EnumType, model.StructType)):
            return self.module.class_name(option)
        if self.encoding and isinstance(option, model.TupleType):
            return "tuple"
        if isinstance(option, model.TensorType) and option.is_vector:
            return "bytes"
        return _CLASSES.get(type(option), "list")


_CLASSES: dict[type[object], str] = {
    model.BoolType: "bool",
    model.IntType: "int",
    model.EnumType: "int",
    model.FloatType: "float",
    model.StrType: "str",
    model.BytesType: "bytes",
    model.DictType: "dict",
}


def _too_long(name: str, limit: int | None) -> list[str]:
    return [] if limit is None else [f"len({name}) > {limit}"]

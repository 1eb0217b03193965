"""Emits tests of plain values: those that msgpack takes and gives as they are.

Encoders and decoders share them, since a list of dicts of strings is the same object on both
sides: it is looked through in place and not rebuilt. A test that fails raises `Unfit`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from msgen.codegen.schema import model
from msgen.codegen.schema.model import Type

from .context import ModuleContext
from .layout import Code

Loops: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Checker:
    """Writes tests into ``code``.

    ``encoding`` says which side this is: objects to be encoded hold enum members and tuples, and
    numbers of other classes may be converted; arrays to be decoded hold msgpack's own types only.
    """

    context: ModuleContext
    code: Code
    encoding: bool
    loop_types: dict[str, Type] = field(default_factory=dict)
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
        floats = [
            part for part in model.walk(type_) if isinstance(part, model.FloatType)
        ]
        return (
            self.encoding
            and bool(floats)
            and all(part.bits == 32 for part in floats)
            and not any(
                isinstance(part, (model.AnyType, model.BytesType))
                for part in model.walk(type_)
            )
            and self.is_plain(model.with_parts(type_, model.FloatType, bits=64))
        )

    def refuse(self, tests: list[str], operator: str = "or") -> None:
        self.code.clause("if", tests, operator)
        self.raise_unfit()

    def raise_unfit(self) -> None:
        with self.code.indented():
            self.code.line(f"raise {self.context.frames('Unfit')}")

    def check(
        self, variable: str, type_: Type, loops: Loops = (), known: bool = False
    ) -> None:
        """Test a variable.

        ``loops`` names the variables of the loops around it; ``known`` says that its class is tested already.
        """
        tests = self.scalar_tests(variable, type_)
        if tests is not None:
            if known:
                tests = tests[1:]
            if tests:
                self.refuse(tests)
        elif isinstance(type_, model.NullableType):
            self._nullable(variable, type_, loops)
        elif isinstance(type_, model.UnionType):
            self._union(variable, type_, loops)
        elif isinstance(type_, model.AnyType):
            self.code.line(f"{self.context.wire('as_plain')}({variable})")
        else:
            class_test = (
                [] if known else [f"type({variable}) is not {self.class_of(type_)}"]
            )
            size_tests = self._size_tests(variable, type_)
            if class_test or size_tests:
                self.refuse([*class_test, *size_tests])
            self._items(variable, type_, loops)

    def scalar_tests(self, variable: str, type_: Type) -> list[str] | None:
        """Return conditions that hold for a misfit, the one on its type first; None if no scalar."""
        context = self.context
        if isinstance(type_, model.EnumType):
            return [f"type({variable}) is not {context.class_name(type_)}"]
        if isinstance(type_, (model.StrType, model.BytesType)):
            name = "str" if isinstance(type_, model.StrType) else "bytes"
            return [
                f"type({variable}) is not {name}",
                *self._too_long(variable, type_.max_len),
            ]
        if isinstance(type_, model.IntType):
            return self._int_tests(variable, type_)
        if isinstance(type_, model.FloatType):
            return [
                f"type({variable}) is not float",
                *self.float_limits(variable, type_),
            ]
        if isinstance(type_, model.BoolType):
            return [f"type({variable}) is not bool"]
        return None

    def _int_tests(self, variable: str, type_: model.IntType) -> list[str]:
        low, high = self.int_limits(type_)
        class_test = f"type({variable}) is not int"
        # msgpack's integers are those of i64 and u64: what was unpacked is no less and no more.
        if not self.encoding and type_.width == "i64":
            return [class_test, f"{variable} > {high}"]
        if not self.encoding and type_.width == "u64":
            return [class_test, f"{variable} < 0"]
        return [class_test, f"not {low} <= {variable} <= {high}"]

    def int_limits(self, type_: model.IntType) -> tuple[str, str]:
        width = type_.width.upper()
        low = "0" if width[0] == "U" else self.context.wire(f"{width}_MIN")
        return low, self.context.wire(f"{width}_MAX")

    def float_limits(self, variable: str, type_: model.FloatType) -> list[str]:
        tests = []
        if type_.finite:
            tests.append(
                f"not {self.context.names.use('math', 'isfinite')}({variable})"
            )
        if type_.bits == 32:
            high = self.context.wire("F32_MAX")
            infinity = self.context.names.use("math", "inf")
            tests.append(f"{high} < abs({variable}) < {infinity}")
        return tests

    def _too_long(self, variable: str, limit: int | None) -> list[str]:
        return [] if limit is None else [f"len({variable}) > {limit}"]

    def _size_tests(self, variable: str, type_: Type) -> list[str]:
        if isinstance(type_, model.TupleType):
            return [f"len({variable}) != {len(type_.items)}"]
        assert isinstance(type_, (model.ListType, model.DictType))
        return self._too_long(variable, type_.max_len)

    def _nullable(self, variable: str, type_: model.NullableType, loops: Loops) -> None:
        tests = self.scalar_tests(variable, type_.item)
        classes = self._class_tests(variable, type_.item)
        if classes:
            self.refuse([f"{variable} is not None", *classes], "and")
            return
        if tests is None:
            self.code.line(f"if {variable} is not None:")
            with self.code.indented():
                self.check(variable, type_.item, loops)
            return
        misfit = tests[0] if len(tests) == 1 else f"({' or '.join(tests)})"
        one_line = f"if {variable} is not None and {misfit}:"
        if len(tests) == 1 or self.code.fits(one_line):
            self.refuse([f"{variable} is not None", misfit], "and")
        else:
            self.code.chain(f"if {variable} is not None and (", tests, "or", "):")
            self.raise_unfit()

    def _items(self, variable: str, type_: Type, loops: Loops) -> None:
        if isinstance(type_, model.TupleType):
            for index, item_type in enumerate(type_.items):
                self.check(f"{variable}[{index}]", item_type, loops)
        elif isinstance(type_, model.ListType):
            item = self._loop_name("item", type_.item, loops)
            self.code.line(f"for {item} in {variable}:")
            with self.code.indented():
                self.check(item, type_.item, (*loops, item))
        else:
            assert isinstance(type_, model.DictType)
            self._dict_items(variable, type_, loops)

    def _dict_items(self, variable: str, type_: model.DictType, loops: Loops) -> None:
        key = self._loop_name("key", type_.key, loops)
        value = self._loop_name("element", type_.value, loops)
        self.code.line(f"for {key}, {value} in {variable}.items():")
        with self.code.indented():
            key_tests = self.scalar_tests(key, type_.key) or []
            value_tests = self.scalar_tests(value, type_.value)
            self.refuse([*key_tests, *(value_tests or [])])
            if value_tests is None:
                self.check(value, type_.value, (*loops, key, value))

    def _loop_name(self, name: str, type_: Type, loops: Loops) -> str:
        """Return a loop variable that no loop around has, nor one of another type."""
        candidate, number = name, 1
        while candidate in loops or self.loop_types.get(candidate, type_) != type_:
            number += 1
            candidate = f"{name}_{number}"
        self.loop_types[candidate] = type_
        return candidate

    def _class_tests(self, variable: str, type_: Type) -> list[str]:
        """Return the tests of a union of which the class alone decides, none for others."""
        if not isinstance(type_, model.UnionType):
            return []
        tests = [self.scalar_tests(variable, option) or [] for option in type_.options]
        return (
            [each[0] for each in tests] if all(len(each) == 1 for each in tests) else []
        )

    def _union(self, variable: str, type_: model.UnionType, loops: Loops) -> None:
        """Test alternatives: those that need more than a look at the class in branches."""
        simple: list[str] = []
        keyword = "if"
        for option in type_.options:
            tests = self.scalar_tests(variable, option)
            if tests is not None and len(tests) == 1:
                simple += tests
                continue
            self.code.line(f"{keyword} {self.kind_test(variable, option)}:")
            keyword = "elif"
            with self.code.indented():
                self.check(variable, option, loops, known=True)
        if simple:
            self.code.clause(keyword, simple, "and")
        else:
            self.code.line("else:")
        self.raise_unfit()

    def kind_test(self, variable: str, option: Type) -> str:
        """Return the condition that a value is of the class of an alternative."""
        return f"type({variable}) is {self.class_of(option)}"

    def class_of(self, option: Type) -> str:
        if self.encoding and isinstance(option, (model.EnumType, model.StructType)):
            return self.context.class_name(option)
        if self.encoding and isinstance(option, model.TupleType):
            return "tuple"
        classes: dict[type[object], str] = {
            model.BoolType: "bool",
            model.IntType: "int",
            model.EnumType: "int",
            model.FloatType: "float",
            model.StrType: "str",
            model.BytesType: "bytes",
            model.DictType: "dict",
        }
        if isinstance(option, model.TensorType) and option.is_vector:
            return "bytes"
        return classes.get(type(option), "list")

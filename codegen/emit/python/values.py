"""Emits expressions for values that change between object and array, on either side.

An expression stands where a slot, an item or an argument stands. What needs statements, such as
the alternatives of a union, becomes a small helper function behind the record's own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from msgen.codegen.schema import model
from msgen.codegen.schema.model import Type
from msgen.codegen.schema.names import snake_case

from .checks import Checker
from .context import ModuleContext
from .layout import Code, Text, bracket, comprehension, flat


@dataclass
class ValueEmitter(ABC):
    """Writes the function of one record.

    Attributes:
        helpers: helper functions written so far, in order of use.
    """

    context: ModuleContext
    record: model.Record
    code: Code = field(default_factory=Code)
    helpers: list[str] = field(default_factory=list)

    encoding = True
    verb = "encode"

    def __post_init__(self) -> None:
        self.checker = Checker(self.context, self.code, self.encoding)

    @abstractmethod
    def scalar(self, value: str, type_: Type) -> str:
        """Return the expression of a bool, int, float, str or enum."""

    @abstractmethod
    def tuple_body(
        self, code: Code, type_: model.TupleType, path: tuple[str, ...], inline: bool
    ) -> None:
        """Write the body of a helper for a tuple; its argument is called `value`."""

    @abstractmethod
    def message_set(self, value: str, refs: tuple[model.MessageType, ...]) -> str:
        """Return the expression of a message that is one of ``refs``."""

    def record_call(self, value: str, ref: model.StructType | model.MessageType) -> str:
        record = self.context.schema.record(ref)
        arguments = [value, *self._frames_argument(record)]
        if self.context.has_depth(record):
            arguments += self.depth_argument()
        return f"{self.context.function(self.verb, ref)}({', '.join(arguments)})"

    def _frames_argument(self, record: model.Record) -> list[str]:
        return ["frames"] if self.context.needs_frames(record) else []

    def depth_argument(self) -> list[str]:
        """What a recursive record hands on; the others let their callee start afresh."""
        return ["depth - 1"] if self.context.is_recursive(self.record) else []

    def expression(
        self, value: str, type_: Type, path: tuple[str, ...], inline: bool = False
    ) -> Text:
        """Return the expression that turns ``value`` into its other form.

        ``path`` names the value inside the record; ``inline`` keeps bytes and tensors in the
        array: where an integer may stand, the index of a frame cannot.
        """
        if isinstance(type_, model.NullableType):
            inner = self.expression(value, type_.item, path, inline)
            return f"None if {value} is None else {flat(inner)}"
        if isinstance(type_, model.BytesType):
            limit = "" if type_.max_len is None else f", {type_.max_len}"
            frames = "None" if inline else "frames"
            return (
                f"{self.context.wire(f'{self.verb}_bytes')}({value}, {frames}{limit})"
            )
        if isinstance(type_, model.TensorType):
            return self._tensor(value, type_, inline)
        if isinstance(type_, model.StructType):
            return self.record_call(value, type_)
        if isinstance(type_, model.MessageType):
            return self.message_set(value, (type_,))
        if isinstance(type_, model.UnionType):
            refs = tuple(
                each for each in type_.options if isinstance(each, model.MessageType)
            )
            if len(refs) == len(type_.options):
                return self.message_set(value, refs)
            return self._helper(value, type_, path, inline)
        if isinstance(type_, model.AnyType):
            return f"{self.context.wire('as_plain')}({value})"
        if isinstance(type_, model.TupleType):
            return self._helper(value, type_, path, inline)
        if isinstance(type_, (model.ListType, model.DictType)):
            if self.checker.is_plain(type_, inline) or self.checker.is_single(type_):
                return self._helper(value, type_, path, inline)
            return self._comprehension(value, type_, path, inline)
        return self.scalar(value, type_)

    def _comprehension(
        self,
        value: str,
        type_: model.ListType | model.DictType,
        path: tuple[str, ...],
        inline: bool,
    ) -> Text:
        limit = "" if type_.max_len is None else f", {type_.max_len}"
        if isinstance(type_, model.ListType):
            items = f"{self.context.wire('as_list')}({value}{limit})"
            item = self.expression("item", type_.item, (*path, "item"), inline)
            return comprehension("[", flat(item), f"for item in {items}", "]")
        items = f"{self.context.wire('as_dict')}({value}{limit}).items()"
        key = self.expression("key", type_.key, (*path, "key"), True)
        item = self.expression("item", type_.value, (*path, "value"), inline)
        element = f"{flat(key)}: {flat(item)}"
        return comprehension("{", element, f"for key, item in {items}", "}")

    def _tensor(self, value: str, type_: model.TensorType, inline: bool) -> str:
        frames = "None" if inline else "frames"
        limits = "" if type_.max_len is None else f", max_len={type_.max_len}"
        sizes = [dim if isinstance(dim, int) else None for dim in type_.dims or ()]
        fixed = any(size is not None for size in sizes)
        if type_.is_vector and not fixed:
            dtype = self.context.dtype(type_.dtype)
            name = self.context.tensors(f"{self.verb}_vector")
            return f"{name}({value}, {dtype}, {frames}{limits})"
        if type_.dims is None:
            shape = "None"
        else:
            shape = f"({', '.join(map(str, sizes))}{',' if len(sizes) == 1 else ''})"
        if type_.dtype == "any":
            name = self.context.tensors(f"{self.verb}_any_tensor")
            return f"{name}({value}, {shape}, {frames}{limits})"
        dtype = self.context.dtype(type_.dtype)
        name = self.context.tensors(f"{self.verb}_tensor")
        return f"{name}({value}, {dtype}, {shape}, {frames}{limits})"

    def _helper(
        self, value: str, type_: Type, path: tuple[str, ...], inline: bool
    ) -> str:
        """Write a helper function for a value and return the call of it."""
        context = self.context
        any_ = context.names.use("typing", "Any")
        parts = (f"_{self.verb}d", snake_case(self.record.name), *path)
        name = context.unique("_".join(parts))
        parameters, arguments = [f"value: {any_}"], [value]
        if context.needs_frames(self.record):
            parameters.append(f"frames: {self.frames_class()} | None")
            arguments.append("frames")
        if context.is_recursive(self.record):
            parameters.append("depth: int")
            arguments.append("depth")
        place = len(self.helpers)
        self.helpers.append("")
        code, checker = self.code, self.checker
        self.code = Code()
        self.checker = Checker(context, self.code, self.encoding)
        self.code.statement(
            "", bracket(f"def {name}(", parameters, ")"), f" -> {any_}:"
        )
        with self.code.indented():
            if self.checker.is_plain(type_, inline) or self.checker.is_single(type_):
                self.checker.check("value", type_)
                single = self.checker.is_single(type_)
                self.code.line(
                    f"return {context.wire('Single')}(value)"
                    if single
                    else "return value"
                )
            elif isinstance(type_, model.TupleType):
                self.tuple_body(self.code, type_, path, inline)
            else:
                assert isinstance(type_, model.UnionType)
                self._union_body(type_, path)
        self.helpers[place] = "\n".join(self.code.lines)
        self.code, self.checker = code, checker
        return f"{name}({', '.join(arguments)})"

    def _union_body(self, type_: model.UnionType, path: tuple[str, ...]) -> None:
        """Write a branch for each alternative; messages among them share one."""
        refs = tuple(
            each for each in type_.options if isinstance(each, model.MessageType)
        )
        for option in type_.options:
            if isinstance(option, model.MessageType) and option != refs[0]:
                continue
            self.code.line(f"if {self.option_test(option, refs)}:")
            with self.code.indented():
                if isinstance(option, model.MessageType):
                    result: Text = self.message_set("value", refs)
                elif self.checker.is_plain(option, inline=True):
                    self.checker.check("value", option, known=True)
                    result = "value"
                else:
                    segment = model.spell(option).partition("[")[0]
                    result = self.expression(
                        "value", option, (*path, snake_case(segment)), True
                    )
                self.code.statement("return ", result)
        self.code.line(f"raise {self.context.frames('Unfit')}")

    @abstractmethod
    def option_test(self, option: Type, refs: tuple[model.MessageType, ...]) -> str:
        """Return the condition that `value` is of an alternative; ``refs`` are its messages."""

    @abstractmethod
    def frames_class(self) -> str:
        """Spell the class of the frames parameter."""

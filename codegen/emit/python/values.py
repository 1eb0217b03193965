"""Expressions for values that change between object and array, on either side.

An expression stands where a slot, an item or an argument stands, and is never deep. What is in
a container of a container, and what needs statements, such as the alternatives of a union, becomes a
small helper function behind the record's own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from msgen.codegen.schema import model
from msgen.codegen.schema.model import Type
from msgen.codegen.schema.names import snake_case

from .checks import Check, Checker
from .module import Module
from .types import tuple_text


class Branch(NamedTuple):
    """An alternative of a union: its condition, what is tested then, and the result."""

    condition: str
    check: Check | None
    result: str


class Helper(NamedTuple):
    """A function that tests and converts one value: after a check, or by branches."""

    name: str
    parameters: str
    check: Check | None
    result: str
    branches: list[Branch]


@dataclass
class Values:
    """Makes the expressions and helpers of one record's encoder or decoder."""

    module: Module
    record: model.Record
    encoding: bool
    helpers: list[Helper | None] = field(default_factory=list)
    """In the order in which they are called for; None while one is being made."""

    def __post_init__(self) -> None:
        self.verb = "encode" if self.encoding else "decode"
        self.checker = Checker(self.module, self.encoding)
        self.is_recursive = self.module.facts.is_recursive(self.record)
        self.needs_frames = self.module.facts.needs_frames(self.record)

    def is_checked(self, type_: Type, inline: bool = False) -> bool:
        """Whether a value is only looked through: it travels as it is."""
        return self.checker.is_plain(type_, inline) or self.checker.is_single(type_)

    def frames_parameter(self) -> list[str]:
        cls = self.module.names["FrameWriter" if self.encoding else "FrameReader"]
        return [f"frames: {cls} | None"]

    def expression(
        self,
        value: str,
        type_: Type,
        path: tuple[str, ...],
        inline: bool = False,
        nested: bool = False,
    ) -> str:
        """Return the expression that turns ``value`` into its other form.

        ``path`` names the value inside the record; ``inline`` keeps bytes and tensors in the
        array: where an integer may stand, the index of a frame cannot. An expression ``nested``
        in another is not for a container.
        """
        names = self.module.names
        frames = "None" if inline else "frames"
        match type_:
            case model.NullableType():
                inner = self.expression(value, type_.item, path, inline, nested)
                return f"None if {value} is None else {inner}"
            case model.BytesType():
                return (
                    f"{names[f'{self.verb}_bytes']}({value}, {frames}{_limit(type_)})"
                )
            case model.TensorType():
                return self._tensor(value, type_, frames)
            case model.StructType():
                return self._record(value, type_)
            case model.MessageType():
                return self.message(value, (type_,))
            case model.UnionType() if messages := _only_messages(type_):
                return self.message(value, messages)
            case model.AnyType():
                return f"{names['as_plain']}({value})"
            case model.ListType() | model.DictType():
                if nested or self.is_checked(type_, inline):
                    return self._helper(value, type_, path, inline)
                name = names[
                    "as_list" if isinstance(type_, model.ListType) else "as_dict"
                ]
                items = f"{name}({value}{_limit(type_)})"
                return self._comprehension(items, type_, path, inline)
            case model.UnionType() | model.TupleType():
                return self._helper(value, type_, path, inline)
        return self._scalar(value, type_)

    def message(self, value: str, refs: tuple[model.MessageType, ...]) -> str:
        """Return the expression of a message that is one of ``refs``."""
        table = self.module.dispatch(self.verb, refs)
        # What is no list either has no item 0 or is refused by the decoder it leads to.
        key = f"type({value})" if self.encoding else f"{value}[0]"
        depth = self._depth(self.module.schema.message(refs[0]))
        return f"{table}[{key}]({', '.join([value, 'frames', *depth])})"

    def _record(self, value: str, ref: model.StructType) -> str:
        record = self.module.schema.record(ref)
        frames = ["frames"] if self.module.facts.needs_frames(record) else []
        function = self.module.function(self.verb, ref)
        return f"{function}({', '.join([value, *frames, *self._depth(record)])})"

    def _depth(self, callee: model.Record) -> list[str]:
        """What a recursive record hands on; the others let their callee start afresh."""
        has_depth = self.is_recursive and self.module.facts.has_depth(callee)
        return ["depth - 1"] if has_depth else []

    def _scalar(self, value: str, type_: Type) -> str:
        names = self.module.names
        match type_:
            case model.EnumType():
                cls = self.module.class_name(type_)
                if self.encoding:
                    return f"{names['as_member']}({value}, {cls})"
                unknown = self.module.schema.enum(type_).unknown
                spare = "" if unknown is None else f", {cls}.{unknown}"
                table = self.module.members_by_number(type_)
                return f"{names['decode_member']}({value}, {table}{spare})"
            case model.StrType():
                return f"{names['as_str']}({value}{_limit(type_)})"
            case model.IntType():
                low, high = self.checker.int_limits(type_)
                return f"{names['as_int']}({value}, {low}, {high})"
            case model.FloatType():
                finite = ", finite=True" if type_.finite else ""
                if type_.bits == 64:
                    return f"{names['as_float']}({value}{finite})"
                name = "encode_f32" if self.encoding else "as_f32"
                return f"{names[name]}({value}{finite})"
        return f"{names['as_bool']}({value})"

    def _comprehension(
        self,
        items: str,
        type_: model.ListType | model.DictType,
        path: tuple[str, ...],
        inline: bool,
    ) -> str:
        """Return the expression of a list or dict whose class and size are tested."""
        if isinstance(type_, model.ListType):
            item = self.expression("item", type_.item, (*path, "item"), inline, True)
            return f"[{item} for item in {items}]"
        key = self.expression("key", type_.key, (*path, "key"), True, True)
        item = self.expression("item", type_.value, (*path, "value"), inline, True)
        return f"{{{key}: {item} for key, item in {items}.items()}}"

    def _tensor(self, value: str, type_: model.TensorType, frames: str) -> str:
        limit = "" if type_.max_len is None else f", max_len={type_.max_len}"
        sizes = [dim if isinstance(dim, int) else None for dim in type_.dims or ()]
        shape = "None" if type_.dims is None else tuple_text(map(str, sizes))
        if type_.dtype == "any":
            kind, arguments = "any_tensor", [value, shape, frames]
        elif type_.is_vector and sizes == [None]:
            kind, arguments = "vector", [value, self.module.dtype(type_.dtype), frames]
        else:
            dtype = self.module.dtype(type_.dtype)
            kind, arguments = "tensor", [value, dtype, shape, frames]
        function = self.module.names[f"{self.verb}_{kind}"]
        return f"{function}({', '.join(arguments)}{limit})"

    def _helper(
        self, value: str, type_: Type, path: tuple[str, ...], inline: bool
    ) -> str:
        """Make a helper function for a value and return the call of it."""
        parts = (f"_{self.verb}", snake_case(self.record.name), *path)
        name = self.module.unique("_".join(parts))
        parameters, arguments = [f"value: {self.module.names['Any']}"], [value]
        if self.needs_frames:
            parameters += self.frames_parameter()
            arguments.append("frames")
        if self.is_recursive:
            parameters.append("depth: int")
            arguments.append("depth")
        place = len(self.helpers)
        self.helpers.append(None)
        outer, self.checker = self.checker, Checker(self.module, self.encoding)
        check, result, branches = None, "", []
        if self.is_checked(type_, inline):
            check = self.checker.check("value", type_)
            is_single = self.checker.is_single(type_)
            result = f"{self.module.names['Single']}(value)" if is_single else "value"
        elif isinstance(type_, model.UnionType):
            branches = self._branches(type_, path)
        elif isinstance(type_, model.TupleType):
            cls = self.checker.class_of(type_)
            misfit = f"type(value) is not {cls} or len(value) != {len(type_.items)}"
            check = Check("scalar", misfit)
            result = self._tuple(type_, path, inline)
        else:
            result = self.expression("value", type_, path, inline)
        self.checker = outer
        self.helpers[place] = Helper(
            name, ", ".join(parameters), check, result, branches
        )
        return f"{name}({', '.join(arguments)})"

    def _tuple(
        self, type_: model.TupleType, path: tuple[str, ...], inline: bool
    ) -> str:
        items = [
            self.expression(f"value[{index}]", item, (*path, str(index)), inline, True)
            for index, item in enumerate(type_.items)
        ]
        return f"[{', '.join(items)}]" if self.encoding else tuple_text(items)

    def _branches(self, type_: model.UnionType, path: tuple[str, ...]) -> list[Branch]:
        """Return a branch for each alternative; messages among them share one."""
        options = type_.options
        refs = tuple(each for each in options if isinstance(each, model.MessageType))
        branches: list[Branch] = []
        for option in options:
            if isinstance(option, model.MessageType) and option != refs[0]:
                continue
            check = None
            if isinstance(option, model.MessageType):
                result = self.message("value", refs)
            elif self.checker.is_plain(option, inline=True):
                check, result = self.checker.known("value", option), "value"
            else:
                segment = snake_case(model.spell(option).partition("[")[0])
                check, result = self._option(option, (*path, segment))
            branches.append(Branch(self._option_test(option, refs), check, result))
        return branches

    def _option(self, option: Type, path: tuple[str, ...]) -> tuple[Check | None, str]:
        """Return what else is tested of a value of an alternative, and its other form."""
        match option:
            case model.TupleType():
                misfit = f"len(value) != {len(option.items)}"
                return Check("scalar", misfit), self._tuple(option, path, True)
            case model.ListType() | model.DictType():
                limit = option.max_len
                check = (
                    None if limit is None else Check("scalar", f"len(value) > {limit}")
                )
                return check, self._comprehension("value", option, path, True)
        return None, self.expression("value", option, path, inline=True)

    def _option_test(self, option: Type, refs: tuple[model.MessageType, ...]) -> str:
        """Return the condition that `value` is of an alternative; ``refs`` are its messages."""
        if self.encoding and isinstance(option, model.MessageType):
            return f"type(value) in {self.module.dispatch('encode', refs)}"
        if self.encoding and isinstance(option, model.TensorType):
            is_any = option.dtype == "any"
            dtype = "None" if is_any else self.module.dtype(option.dtype)
            rank = None if option.dims is None else len(option.dims)
            return f"{self.module.names['is_tensor']}(value, {dtype}, {rank})"
        return self.checker.class_test("value", option)


def _only_messages(type_: model.UnionType) -> tuple[model.MessageType, ...]:
    """Return the alternatives of a union of messages, nothing for other unions."""
    refs = tuple(each for each in type_.options if isinstance(each, model.MessageType))
    return refs if len(refs) == len(type_.options) else ()


def _limit(type_: Type) -> str:
    max_len = getattr(type_, "max_len", None)
    return "" if max_len is None else f", {max_len}"

"""Type expressions to model types: names looked up, arguments and alternatives checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from msgen.codegen.schema import model
from msgen.codegen.schema.errors import Problems
from msgen.codegen.schema.model import Type
from msgen.codegen.schema.texts import did_you_mean, shown
from msgen.codegen.schema.yaml.nodes import Scalar

from .expression import (
    NameExpr,
    NullableExpr,
    SizeExpr,
    TypeExpr,
    TypeSyntaxError,
    UnionExpr,
    parse_type,
)
from .scope import GENERICS, SCALARS, Scope
from .unions import explain_ambiguity

MAX_RANK = 64
"""Most dimensions of a tensor, torch's own limit."""

_KEY_TYPES = (
    model.BoolType,
    model.IntType,
    model.StrType,
    model.BytesType,
    model.EnumType,
)
_DTYPES_ELSEWHERE = {
    "float": "float32",
    "double": "float64",
    "int": "int32",
    "long": "int64",
    "half": "float16",
    "fp16": "float16",
    "fp32": "float32",
    "float8": "float8_e4m3fn",
    "fp8": "float8_e4m3fn",
}
"""What dtypes are called elsewhere, to the torch name that is most likely meant."""


class _Stop(Exception):
    """A problem was reported; the type it is in cannot be built."""


@dataclass(frozen=True)
class TypeChecker:
    """Builds the types of one group."""

    scope: Scope
    problems: Problems

    def build(self, text: Scalar) -> Type | None:
        """Return the type that a field's text means, or None after reporting what is wrong."""
        try:
            return self._build(parse_type(text.text), text)
        except TypeSyntaxError as error:
            self.problems.add(
                text.inner_place(error.offset),
                "type-syntax",
                f"type {shown(text.text)}: {error.reason}",
            )
        except _Stop:
            pass
        return None

    def _fail(self, text: Scalar, offset: int, rule: str, message: str) -> _Stop:
        self.problems.add(text.inner_place(offset), rule, message)
        return _Stop()

    def _build(self, expr: TypeExpr, text: Scalar) -> Type:
        if isinstance(expr, NullableExpr):
            item = self._build(expr.item, text)
            if isinstance(item, (model.NullableType, model.AnyType)):
                raise self._fail(
                    text,
                    expr.mark,
                    "nullable",
                    f"'{model.spell(item)}' holds null already; remove the '?'",
                )
            return model.NullableType(item)
        if isinstance(expr, UnionExpr):
            return self._union(expr, text)
        if isinstance(expr, SizeExpr):
            raise self._fail(
                text,
                expr.offset,
                "type-syntax",
                f"'{expr.text}' is a size, not a type; sizes stand in tensor[...] only",
            )
        if expr.name in GENERICS:
            return self._generic(expr, text)
        if expr.name not in SCALARS:
            return self._named(expr, text)
        if expr.args is not None:
            raise self._no_arguments(expr, text)
        return _scalar(expr.name)

    def _no_arguments(self, expr: NameExpr, text: Scalar) -> _Stop:
        return self._fail(
            text,
            expr.offset,
            "type-arguments",
            f"{shown(expr.name)} takes no arguments; those that do are {', '.join(GENERICS)}",
        )

    def _named(self, expr: NameExpr, text: Scalar) -> Type:
        symbol = self.scope.symbols.get(expr.name)
        if symbol is None:
            if self.scope.may_hold(expr.name):
                raise _Stop
            raise self._fail(
                text,
                expr.offset,
                "unknown-type",
                f"unknown type {shown(expr.name)}{self.scope.explain_unknown(expr.name)}",
            )
        if expr.args is not None:
            raise self._no_arguments(expr, text)
        if symbol.section.flag("removed"):
            raise self._fail(
                text,
                expr.offset,
                "removed-type",
                f"message '{expr.name}' is removed; a field cannot hold it any more",
            )
        kinds: dict[str, Callable[[str, str], Type]] = {
            "enum": model.EnumType,
            "struct": model.StructType,
            "message": model.MessageType,
        }
        return kinds[symbol.kind](symbol.group, symbol.name)

    def _generic(self, expr: NameExpr, text: Scalar) -> Type:
        args = expr.args or ()
        if expr.name == "tensor":
            return self._tensor(expr, args, text)
        wanted = {
            "list": "1 type, as in list[int]",
            "dict": "2 types, as in dict[str, int]",
        }
        if (expr.name, len(args)) not in (("list", 1), ("dict", 2)) and (
            expr.name != "tuple" or not args
        ):
            example = wanted.get(expr.name, "1 or more types, as in tuple[int, str]")
            raise self._fail(
                text,
                expr.offset,
                "type-arguments",
                f"'{expr.name}' takes {example}; it has {len(args)}",
            )
        types = [self._build(arg, text) for arg in args]
        if expr.name == "list":
            return model.ListType(types[0])
        if expr.name == "tuple":
            return model.TupleType(tuple(types))
        if not isinstance(types[0], _KEY_TYPES):
            raise self._fail(
                text,
                args[0].offset,
                "dict-key",
                f"dict keys cannot be "
                f"'{model.spell(types[0])}'; use a bool, an integer, str, bytes or an enum",
            )
        return model.DictType(types[0], types[1])

    def _tensor(self, expr: NameExpr, args: tuple[TypeExpr, ...], text: Scalar) -> Type:
        dtype = args[0] if args else None
        if not isinstance(dtype, NameExpr) or dtype.args is not None:
            raise self._fail(
                text,
                expr.offset,
                "type-arguments",
                "'tensor' takes a dtype and its dimensions, as in tensor[int32, seq]",
            )
        if dtype.name not in (*model.DTYPES, "any"):
            hint = (
                f"; write '{_DTYPES_ELSEWHERE[dtype.name]}'"
                if dtype.name in _DTYPES_ELSEWHERE
                else did_you_mean(dtype.name, model.DTYPES)
            )
            raise self._fail(
                text,
                dtype.offset,
                "unknown-dtype",
                f"unknown dtype {shown(dtype.name)}"
                f"{hint or '; it is a torch name such as int32 or bfloat16, or any'}",
            )
        dims = tuple(self._dim(arg, text) for arg in args[1:])
        if "*" in dims:
            if len(dims) > 1:
                raise self._fail(
                    text,
                    args[1 + dims.index("*")].offset,
                    "tensor-dims",
                    "'*' means any rank and stands alone, as in "
                    "tensor[int32, *]; use '_' for one dimension of any size",
                )
            return model.TensorType(dtype.name, None)
        if len(dims) > MAX_RANK:
            raise self._fail(
                text,
                args[1 + MAX_RANK].offset,
                "tensor-dims",
                f"{len(dims)} dimensions; at most {MAX_RANK}",
            )
        return model.TensorType(dtype.name, dims)

    def _dim(self, arg: TypeExpr, text: Scalar) -> int | str:
        if isinstance(arg, SizeExpr):
            if arg.text == "*":
                return "*"
            if len(arg.text) < 19 and str(int(arg.text)) == arg.text:
                return int(arg.text)
        elif isinstance(arg, NameExpr) and arg.args is None:
            return arg.name
        raise self._fail(
            text,
            arg.offset,
            "tensor-dims",
            f"{_spelled(arg)} is no dimension; it is an integer, a name, '_' for any size, or '*' "
            "alone for any rank",
        )

    def _union(self, expr: UnionExpr, text: Scalar) -> Type:
        options: list[Type] = []
        for each in _alternatives(expr):
            option = self._build(each, text)
            if isinstance(each, NullableExpr):
                raise self._fail(
                    text,
                    each.mark,
                    "nullable",
                    "'?' on one alternative; put it on them all, as in (A | B)?",
                )
            ambiguity = explain_ambiguity(option, options)
            if ambiguity:
                raise self._fail(text, each.offset, "ambiguous-union", ambiguity)
            options.append(option)
        return model.UnionType(tuple(options))


def _alternatives(expr: UnionExpr) -> Iterator[TypeExpr]:
    for each in expr.options:
        if isinstance(each, UnionExpr):
            yield from _alternatives(each)
        else:
            yield each


def _spelled(expr: TypeExpr) -> str:
    if isinstance(expr, SizeExpr):
        return shown(expr.text)
    if isinstance(expr, NameExpr):
        return shown(f"{expr.name}[...]")
    return "this"


def _scalar(name: str) -> Type:
    if name in ("float", "f32"):
        return model.FloatType(32 if name == "f32" else 64)
    if name == "int":
        return model.IntType("i64")
    if name in model.INT_RANGES:
        return model.IntType(name)
    plain: dict[str, Type] = {
        "bool": model.BoolType(),
        "str": model.StrType(),
        "bytes": model.BytesType(),
        "any": model.AnyType(),
    }
    return plain[name]

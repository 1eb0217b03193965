"""Type expressions to model types: names looked up, arguments and alternatives checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from msgen.codegen.schema import model
from msgen.codegen.schema.errors import Problems, Reported
from msgen.codegen.schema.model import Type
from msgen.codegen.schema.rule import Rule
from msgen.codegen.schema.texts import did_you_mean, shown
from msgen.codegen.schema.yaml import Scalar

from .expression import (
    TYPE_SYNTAX,
    NameExpr,
    NullableExpr,
    SizeExpr,
    TypeExpr,
    TypeSyntaxError,
    UnionExpr,
    parse_type,
)
from .scope import GENERICS, SCALARS, Scope
from .unions import AMBIGUOUS_UNION, explain_ambiguity

_ARGUMENTS = {
    "list": (1, "1 type, as in list[int]"),
    "dict": (2, "2 types, as in dict[str, int]"),
    "tuple": (None, "1 or more types, as in tuple[int, str]"),
}
"""How many types a generic takes, and how errors say it."""

MAX_RANK = 64
"""Most dimensions of a tensor, torch's own limit."""

_DECLARED: dict[str, Callable[[str, str], Type]] = {
    "enum": model.EnumType,
    "struct": model.StructType,
    "message": model.MessageType,
}
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


def build_type(text: Scalar, scope: Scope, problems: Problems) -> Type | None:
    """Return the type that a field's text means, or None after reporting what is wrong."""
    try:
        return _TypeBuilder(text, scope, problems).build(parse_type(text.text))
    except TypeSyntaxError as error:
        place = text.inner_place(error.offset)
        problems.add(place, TYPE_SYNTAX, f"type {shown(text.text)}: {error.reason}")
    except Reported:
        pass
    return None


@dataclass(frozen=True)
class _TypeBuilder:
    text: Scalar
    scope: Scope
    problems: Problems

    def _fail(self, offset: int, rule: Rule, message: str) -> Reported:
        return self.problems.fail(self.text.inner_place(offset), rule, message)

    def build(self, expr: TypeExpr) -> Type:
        if isinstance(expr, NullableExpr):
            item = self.build(expr.item)
            if isinstance(item, (model.NullableType, model.AnyType)):
                raise self._fail(
                    expr.mark,
                    NULLABLE,
                    f"'{model.spell(item)}' holds null already; remove the '?'",
                )
            return model.NullableType(item)
        if isinstance(expr, UnionExpr):
            return self._union(expr)
        if isinstance(expr, SizeExpr):
            raise self._fail(
                expr.offset,
                TYPE_SYNTAX,
                f"'{expr.text}' is a size, not a type; sizes stand in tensor[...] only",
            )
        if expr.name in GENERICS:
            return self._generic(expr)
        if expr.name not in SCALARS:
            return self._named(expr)
        if expr.args is not None:
            raise self._no_arguments(expr)
        return SCALARS[expr.name]

    def _no_arguments(self, expr: NameExpr) -> Reported:
        return self._fail(
            expr.offset,
            TYPE_ARGUMENTS,
            f"{shown(expr.name)} takes no arguments; those that do are {', '.join(GENERICS)}",
        )

    def _named(self, expr: NameExpr) -> Type:
        symbol = self.scope.symbols.get(expr.name)
        if symbol is None:
            if self.scope.may_hold(expr.name):
                raise Reported
            raise self._fail(
                expr.offset,
                UNKNOWN_TYPE,
                f"unknown type {shown(expr.name)}{self.scope.explain_unknown(expr.name)}",
            )
        if expr.args is not None:
            raise self._no_arguments(expr)
        if symbol.section.flag("removed"):
            raise self._fail(
                expr.offset,
                REMOVED_TYPE,
                f"message '{expr.name}' is removed; a field cannot hold it any more",
            )
        return _DECLARED[symbol.kind](symbol.group, symbol.name)

    def _generic(self, expr: NameExpr) -> Type:
        args = expr.args or ()
        if expr.name == "tensor":
            return self._tensor(expr, args)
        number, example = _ARGUMENTS[expr.name]
        if len(args) != (number or max(len(args), 1)):
            raise self._fail(
                expr.offset,
                TYPE_ARGUMENTS,
                f"'{expr.name}' takes {example}; it has {len(args)}",
            )
        types = [self.build(arg) for arg in args]
        if expr.name == "list":
            return model.ListType(types[0])
        if expr.name == "tuple":
            return model.TupleType(tuple(types))
        if not isinstance(types[0], _KEY_TYPES):
            raise self._fail(
                args[0].offset,
                DICT_KEY,
                f"dict keys cannot be "
                f"'{model.spell(types[0])}'; use a bool, an integer, str, bytes or an enum",
            )
        return model.DictType(types[0], types[1])

    def _tensor(self, expr: NameExpr, args: tuple[TypeExpr, ...]) -> Type:
        dtype = args[0] if args else None
        if not isinstance(dtype, NameExpr) or dtype.args is not None:
            raise self._fail(
                expr.offset,
                TYPE_ARGUMENTS,
                "'tensor' takes a dtype and its dimensions, as in tensor[int32, seq]",
            )
        if dtype.name not in (*model.DTYPES, "any"):
            hint = (
                f"; write '{_DTYPES_ELSEWHERE[dtype.name]}'"
                if dtype.name in _DTYPES_ELSEWHERE
                else did_you_mean(dtype.name, model.DTYPES)
            )
            raise self._fail(
                dtype.offset,
                UNKNOWN_DTYPE,
                f"unknown dtype {shown(dtype.name)}"
                f"{hint or '; it is a torch name such as int32 or bfloat16, or any'}",
            )
        dims = tuple(self._dim(arg) for arg in args[1:])
        if "*" in dims:
            if len(dims) > 1:
                raise self._fail(
                    args[1 + dims.index("*")].offset,
                    TENSOR_DIMS,
                    "'*' means any rank and stands alone, as in "
                    "tensor[int32, *]; use '_' for one dimension of any size",
                )
            return model.TensorType(dtype.name, None)
        if len(dims) > MAX_RANK:
            raise self._fail(
                args[1 + MAX_RANK].offset,
                TENSOR_DIMS,
                f"{len(dims)} dimensions; at most {MAX_RANK}",
            )
        return model.TensorType(dtype.name, dims)

    def _dim(self, arg: TypeExpr) -> int | str:
        if isinstance(arg, SizeExpr):
            if arg.text == "*":
                return "*"
            if len(arg.text) < 19 and str(int(arg.text)) == arg.text:
                return int(arg.text)
        elif isinstance(arg, NameExpr) and arg.args is None:
            return arg.name
        raise self._fail(
            arg.offset,
            TENSOR_DIMS,
            f"{_spelled(arg)} is no dimension; it is an integer, a name, '_' for any size, or '*' "
            "alone for any rank",
        )

    def _union(self, expr: UnionExpr) -> Type:
        options: list[Type] = []
        for each in _alternatives(expr):
            option = self.build(each)
            if isinstance(each, NullableExpr):
                raise self._fail(
                    each.mark,
                    NULLABLE,
                    "'?' on one alternative; put it on them all, as in (A | B)?",
                )
            ambiguity = explain_ambiguity(option, options)
            if ambiguity:
                raise self._fail(each.offset, AMBIGUOUS_UNION, ambiguity)
            options.append(option)
        return model.UnionType(tuple(options))


TYPE_ARGUMENTS = Rule(
    "type-arguments",
    "a type has too many or too few arguments in brackets",
    "The types of items, and the dtype and dimensions of a tensor, decide what is written and what "
    "a reader takes.",
    "write `list[T]`, `tuple[A, B]`, `dict[K, V]` or `tensor[dtype, dims]`; other types have no "
    "brackets.",
    _TypeBuilder._generic,
)
UNKNOWN_TYPE = Rule(
    "unknown-type",
    "a field's type is neither built in, nor declared in the group, nor imported",
    "Nothing says how its values are written.",
    "correct the spelling, declare a struct or an enum, or add the group that declares it to "
    "`imports`. Messages of other groups cannot be used: share a struct.",
    _TypeBuilder._named,
)
REMOVED_TYPE = Rule(
    "removed-type",
    "a field holds a message that is removed",
    "A removed message has no class any more; only its tag is kept, so that no other takes it.",
    "take the message out of the type, or remove the field too.",
    _TypeBuilder._named,
)
DICT_KEY = Rule(
    "dict-key",
    "the keys of a dict are of a type that cannot be a key",
    "They become keys of Python dicts. Lists, structs and tensors have no hash, and floats are "
    "poor keys: nan is not equal to itself.",
    "use a bool, an integer, str, bytes or an enum as the key, or a list of structs.",
    _TypeBuilder._generic,
)
UNKNOWN_DTYPE = Rule(
    "unknown-dtype",
    "a tensor has a dtype that torch does not know",
    "A tensor travels as plain bytes, which mean something by their dtype only.",
    "write torch's name of it, such as int32 or bfloat16, or `any`.",
    _TypeBuilder._tensor,
)
TENSOR_DIMS = Rule(
    "tensor-dims",
    "a tensor's dimensions are not sizes, names, `_` or a single `*`",
    "Readers check the shape against the dimensions, and torch has no tensor of more than "
    f"{MAX_RANK}.",
    "write an integer, a name (one size wherever it stands in a message), `_` for any size, or "
    "`*` alone for any rank.",
    _TypeBuilder._tensor,
)
NULLABLE = Rule(
    "nullable",
    "a `?` says nothing, or stands on one alternative of a union",
    "`T??` and `any?` hold no more than `T?` and `any`, and `A? | B` would read as if only an A "
    "could be null.",
    "remove the `?`, or put it on the whole union, as in `(A | B)?`.",
    _TypeBuilder.build,
)


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

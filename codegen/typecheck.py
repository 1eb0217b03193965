"""Type expressions to model types: names looked up, arguments and alternatives checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from . import model
from .errors import Place, Problems
from .model import Type
from .nodes import Scalar
from .scope import GENERICS, SCALARS, Scope
from .sections import Section, did_you_mean
from .typeexpr import (
    NameExpr,
    NullableExpr,
    SizeExpr,
    TypeExpr,
    TypeSyntaxError,
    UnionExpr,
    parse_type,
)

_KEY_TYPES = (
    model.BoolType,
    model.IntType,
    model.StrType,
    model.BytesType,
    model.EnumType,
)


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
                f"type '{text.text}': {error.reason}",
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
                    expr.offset,
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
        if expr.args is not None:
            raise self._fail(
                text,
                expr.offset,
                "type-arguments",
                f"'{expr.name}' takes no arguments; those that do are {', '.join(GENERICS)}",
            )
        if expr.name in SCALARS:
            return _scalar(expr.name)
        return self._named(expr, text)

    def _named(self, expr: NameExpr, text: Scalar) -> Type:
        symbol = self.scope.symbols.get(expr.name)
        if symbol is None:
            raise self._fail(
                text,
                expr.offset,
                "unknown-type",
                f"unknown type '{expr.name}'{self.scope.explain_unknown(expr.name)}",
            )
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
            hint = did_you_mean(dtype.name, model.DTYPES)
            raise self._fail(
                text,
                dtype.offset,
                "unknown-dtype",
                f"unknown dtype '{dtype.name}'"
                f"{hint or '; it is a torch name such as int32 or bfloat16, or any'}",
            )
        dims = tuple(self._dim(arg, text) for arg in args[1:])
        if "*" in dims:
            if len(dims) > 1:
                raise self._fail(
                    text,
                    expr.offset,
                    "tensor-dims",
                    "'*' means any rank and stands alone, as in "
                    "tensor[int32, *]; use '_' for one dimension of any size",
                )
            return model.TensorType(dtype.name, None)
        if len(dims) > MAX_RANK:
            raise self._fail(
                text,
                expr.offset,
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
            "a dimension is an integer, a name, '_' for any size, or '*' alone for any rank",
        )

    def _union(self, expr: UnionExpr, text: Scalar) -> Type:
        options: list[Type] = []
        for each in expr.options:
            option = self._build(each, text)
            if isinstance(option, model.NullableType):
                raise self._fail(
                    text,
                    each.offset,
                    "nullable",
                    "'?' on one alternative; put it on them all, as in (A | B)?",
                )
            options += (
                option.options if isinstance(option, model.UnionType) else (option,)
            )
        seen: dict[str, Type] = {}
        for option in options:
            kind = msgpack_kind(option)
            other = seen.get(kind)
            both_messages = isinstance(option, model.MessageType) and isinstance(
                other, model.MessageType
            )
            if (
                other == option
                or (other is not None and not both_messages)
                or kind == "any"
            ):
                against = (
                    "every other"
                    if kind == "any"
                    else f"'{model.spell(other or option)}'"
                )
                raise self._fail(
                    text,
                    expr.offset,
                    "ambiguous-union",
                    f"alternatives "
                    f"'{model.spell(option)}' and {against} cannot be told apart: both are "
                    f"{kind} in msgpack; wrap them in messages, which have tags",
                )
            seen[kind] = option
        return model.UnionType(tuple(options))


MAX_RANK = 64
"""Most dimensions of a tensor, torch's own limit."""


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


def msgpack_kind(type_: Type) -> str:
    """Return the msgpack kind that values of a type have on the wire, `any` for several."""
    if isinstance(type_, model.TensorType):
        return "bin" if type_.is_vector else "array"
    return {
        model.BoolType: "bool",
        model.IntType: "int",
        model.EnumType: "int",
        model.FloatType: "float",
        model.StrType: "str",
        model.BytesType: "bin",
        model.DictType: "map",
        model.AnyType: "any",
    }.get(type(type_), "array")


def apply_limits(type_: Type, field: Section, problems: Problems) -> Type:
    """Put a field's `max_len`, `finite` and `device` where they belong in its type."""
    core = type_.item if isinstance(type_, model.NullableType) else type_
    limited = core
    if "max_len" in field:
        if isinstance(
            core,
            (
                model.StrType,
                model.BytesType,
                model.ListType,
                model.DictType,
                model.TensorType,
            ),
        ):
            limited = replace(core, max_len=field.count("max_len"))
        else:
            _misplaced(
                "max_len",
                "str, bytes, list, dict and tensor fields",
                core,
                field,
                problems,
            )
    if "device" in field:
        if field.text("device") != "worker":
            problems.add(
                field.place_of("device"),
                "bad-device",
                f"device '{field.text('device')}' of field '{field.name}'; the only device is "
                "'worker'",
            )
        else:
            placed = _each(limited, model.TensorType, device="worker")
            if placed == limited:
                _misplaced("device", "fields that hold tensors", core, field, problems)
            limited = placed
    if field.flag("finite"):
        finite = _each(limited, model.FloatType, finite=True)
        if finite == limited:
            _misplaced("finite", "fields that hold floats", core, field, problems)
        limited = finite
    return model.NullableType(limited) if core is not type_ else limited


def _misplaced(
    key: str, fits: str, type_: Type, field: Section, problems: Problems
) -> None:
    place: Place = field.key_place(key)
    problems.add(
        place,
        "misplaced-limit",
        f"'{key}' on field '{field.name}' of type '{model.spell(type_)}'; it is for {fits}: "
        "remove it",
    )


def _each(type_: Type, kind: type[Type], **changes: Any) -> Type:
    """Return the type with every part of one kind changed."""
    if isinstance(type_, kind):
        return replace(type_, **changes)
    if isinstance(type_, (model.ListType, model.NullableType)):
        return replace(type_, item=_each(type_.item, kind, **changes))
    if isinstance(type_, model.TupleType):
        return model.TupleType(
            tuple(_each(item, kind, **changes) for item in type_.items)
        )
    if isinstance(type_, model.UnionType):
        return model.UnionType(
            tuple(_each(option, kind, **changes) for option in type_.options)
        )
    if isinstance(type_, model.DictType):
        return replace(type_, value=_each(type_.value, kind, **changes))
    return type_

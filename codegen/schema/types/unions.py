"""Alternatives of a union: which can be told apart, and what to do about those that cannot."""

from __future__ import annotations

from collections.abc import Iterable

from msgen.codegen.schema import model
from msgen.codegen.schema.model import Type
from msgen.codegen.schema.rule import Rule

_KINDS: dict[type[Type], str] = {
    model.BoolType: "booleans",
    model.IntType: "integers",
    model.EnumType: "integers",
    model.FloatType: "floats",
    model.StrType: "strings",
    model.BytesType: "bytes",
    model.DictType: "maps",
}
_NUMBERS = (model.IntType, model.FloatType)


def explain_ambiguity(option: Type, earlier: Iterable[Type]) -> str | None:
    """Say why an alternative cannot be told from an earlier one; None when it can."""
    if isinstance(option, model.AnyType):
        return "'any' takes every value and cannot have alternatives; write 'any' alone"
    for other in earlier:
        if other == option:
            return f"'{model.spell(option)}' stands twice; remove one"
        both_messages = isinstance(option, model.MessageType) and isinstance(
            other, model.MessageType
        )
        if _kind(option) == _kind(other) and not both_messages:
            remedy = (
                "keep the wider one"
                if isinstance(option, _NUMBERS) and isinstance(other, _NUMBERS)
                else "wrap them in messages, which have tags"
            )
            return (
                f"alternatives '{model.spell(other)}' and '{model.spell(option)}' cannot be told "
                f"apart: both are {_kind(option)} in msgpack; {remedy}"
            )
    return None


AMBIGUOUS_UNION = Rule(
    "ambiguous-union",
    "two alternatives of a union cannot be told apart",
    "Alternatives have no tag on the wire, except for messages: a reader knows them by their "
    "msgpack kind. Of two structs, or a string and another string, it could only guess.",
    "keep one of them, or make messages of them, which have tags and may all stand in one union.",
    explain_ambiguity,
)


def _kind(type_: Type) -> str:
    """Name the msgpack kind that values of a type have on the wire."""
    if isinstance(type_, model.TensorType):
        return "bytes" if type_.is_vector else "arrays"
    return _KINDS.get(type(type_), "arrays")

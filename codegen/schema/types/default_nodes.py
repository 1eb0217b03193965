"""What a YAML node looks like, for a default whose type leaves a choice."""

from __future__ import annotations

import math
import re

from msgen.codegen.schema import model
from msgen.codegen.schema.model import Type
from msgen.codegen.schema.yaml.nodes import Mapping, Node, Scalar, Sequence

INTEGER = re.compile(r"-?(0|[1-9][0-9]*)\Z")
FLOAT = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?\Z")
SPECIAL_FLOATS = {".inf": math.inf, "-.inf": -math.inf, ".nan": math.nan}

_EXAMPLES: dict[type[Type], str] = {
    model.BoolType: ", true or false",
    model.IntType: ", a decimal integer without quotes or leading zeros",
    model.FloatType: ", such as 1.0, 1e-5, .inf or .nan",
    model.ListType: ", such as []",
    model.DictType: ", such as {}",
    model.StructType: ", a mapping of its fields such as {}",
}


def is_plain(node: Node, text: str) -> bool:
    return isinstance(node, Scalar) and node.plain and node.text == text


def is_null(node: Node) -> bool:
    """Say whether a node is one of YAML's words for null, an empty value aside."""
    return isinstance(node, Scalar) and bool(node.text) and node.implicit() == "null"


def matches(node: Node, option: Type) -> bool:
    """Say whether a node looks like an alternative, by its YAML kind alone."""
    if isinstance(node, Sequence):
        return isinstance(option, (model.ListType, model.TupleType))
    if isinstance(node, Mapping):
        return isinstance(option, (model.DictType, model.StructType))
    if not isinstance(node, Scalar):
        return True
    if not node.plain:
        return isinstance(option, (model.StrType, model.BytesType, model.EnumType))
    if node.text in ("true", "false"):
        return isinstance(option, model.BoolType)
    if INTEGER.match(node.text):
        return isinstance(option, (model.IntType, model.FloatType))
    if FLOAT.match(node.text) or node.text in SPECIAL_FLOATS:
        return isinstance(option, model.FloatType)
    return isinstance(option, (model.StrType, model.BytesType, model.EnumType))


def expected(node: Node, type_: Type) -> str:
    """Say what a default of a type looks like, to the author who wrote ``node``."""
    if is_null(node):
        remedy = f"; for null, make the type nullable: '{model.spell(model.NullableType(type_))}'"
    else:
        remedy = _EXAMPLES.get(type(type_), "")
    return f"expected {model.spell(type_)}{remedy}"

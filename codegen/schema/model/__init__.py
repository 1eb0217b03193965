"""The checked model of a schema: frozen, and valid once it is built.

`types` are what fields hold, `values` their defaults, and `groups` what the files declare. The
loader is the only maker of these objects. Nothing in here is optional that validation has ruled
out, so later stages never check again.

It imports `errors` only, for places.
"""

from .groups import (
    Enum,
    EnumMember,
    Field,
    Group,
    Message,
    Record,
    RecordKey,
    Schema,
    Struct,
)
from .types import (
    DTYPES,
    INT_RANGES,
    AnyType,
    BoolType,
    BytesType,
    DictType,
    EnumType,
    FloatType,
    IntType,
    ListType,
    MessageType,
    NullableType,
    StrType,
    StructType,
    TensorType,
    TupleType,
    Type,
    UnionType,
    children,
    spell,
    walk,
    with_parts,
)
from .values import Default, EnumDefault, StructDefault, Value, holds_value

__all__ = [
    "DTYPES",
    "INT_RANGES",
    "AnyType",
    "BoolType",
    "BytesType",
    "Default",
    "DictType",
    "Enum",
    "EnumDefault",
    "EnumMember",
    "EnumType",
    "Field",
    "FloatType",
    "Group",
    "IntType",
    "ListType",
    "Message",
    "MessageType",
    "NullableType",
    "Record",
    "RecordKey",
    "Schema",
    "StrType",
    "Struct",
    "StructDefault",
    "StructType",
    "TensorType",
    "TupleType",
    "Type",
    "UnionType",
    "Value",
    "children",
    "holds_value",
    "spell",
    "walk",
    "with_parts",
]

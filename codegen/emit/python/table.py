"""Emits the description table: each record's fields and types as plain data.

The table stands beside the functions and is what everything but the fast path reads: error
explanations, the table-driven codec, tools.
"""

from __future__ import annotations

from msgen.codegen.schema import model
from msgen.codegen.schema.model import Type

from .classes import value_text
from .context import RUNTIME, ModuleContext
from .layout import Code, Text, bracket, flat, literal, tuple_of

RECORDS = "_RECORDS"


def emit_table(context: ModuleContext) -> str:
    """Emit the dict from classes to their descriptions, those of imported structs included."""
    final = context.names.use("typing", "Final")
    record_class = f"{table_name(context)}.Record"
    entries: list[Text] = [
        f"**{context.names.sibling(group, RECORDS, f'_{group}_records_')}"
        for group in _imported(context)
    ]
    entries += [_record(context, record) for record in context.group.records]
    code = Code()
    type_ = f"{final}[dict[type, {record_class}]]"
    code.statement(f"{RECORDS}: {type_} = ", bracket("{", entries, "}"))
    return "\n".join(code.lines)


def _imported(context: ModuleContext) -> list[str]:
    """Groups whose structs this group's fields name."""
    used = {
        part.group
        for record in context.group.records
        for field in record.fields
        for part in model.walk(field.type)
        if isinstance(part, model.StructType)
    }
    return sorted(used - {context.group.name})


def table_name(context: ModuleContext) -> str:
    """Return how the module names the description table's own module."""
    return context.names.use(RUNTIME, "table")


def _record(context: ModuleContext, record: model.Record) -> Text:
    items: list[Text] = [literal(record.name)]
    fields = [_field(context, field) for field in record.fields]
    items.append(tuple_of(fields))
    if isinstance(record, model.Message):
        items.append(f"tag={record.tag}")
    if context.is_recursive(record):
        items.append("recursive=True")
    return bracket(f"{record.name}: {table_name(context)}.Record(", items, ")")


def _field(context: ModuleContext, field: model.Field) -> Text:
    table = table_name(context)
    items: list[Text] = [literal(field.name), _type(context, field.type)]
    if field.default is not None:
        text = value_text(context, field.default.value, field.type)
        value = field.default.value
        empty = type(value).__name__ if value in ([], {}) else None
        items.append(f"default={empty or f'lambda: {flat(text)}'}")
    if field.since > 1:
        items.append(f"since={field.since}")
    if field.removed:
        items.append("removed=True")
    return bracket(f"{table}.Field(", items, ")")


def _type(context: ModuleContext, type_: Type) -> Text:
    name, arguments = _spelled(context, type_)
    return bracket(f"{table_name(context)}.{name}(", arguments, ")")


def _spelled(context: ModuleContext, type_: Type) -> tuple[str, list[Text]]:
    limit: list[Text] = []
    max_len = getattr(type_, "max_len", None)
    if max_len is not None:
        limit.append(f"max_len={max_len}")
    if isinstance(type_, model.IntType):
        return "Int", [literal(type_.width)]
    if isinstance(type_, model.FloatType):
        return "Float", [str(type_.bits), *(["finite=True"] if type_.finite else [])]
    if isinstance(type_, model.StrType):
        return "Str", limit
    if isinstance(type_, model.BytesType):
        return "Bytes", limit
    if isinstance(type_, model.AnyType):
        return "Plain", []
    if isinstance(type_, model.NullableType):
        return "Nullable", [_type(context, type_.item)]
    if isinstance(type_, model.ListType):
        return "List", [_type(context, type_.item), *limit]
    if isinstance(type_, model.TupleType):
        return "Tuple", [tuple_of([_type(context, item) for item in type_.items])]
    if isinstance(type_, model.DictType):
        return "Dict", [_type(context, type_.key), _type(context, type_.value), *limit]
    if isinstance(type_, model.UnionType):
        return "Union", [tuple_of([_type(context, option) for option in type_.options])]
    if isinstance(type_, model.EnumType):
        unknown = context.schema.enum(type_).unknown
        cls = context.class_name(type_)
        return "Enum", [
            cls,
            *([f"unknown={cls}.{unknown}"] if unknown is not None else []),
        ]
    if isinstance(type_, model.StructType):
        return "Struct", [context.class_name(type_)]
    if isinstance(type_, model.MessageType):
        return "Message", [context.class_name(type_)]
    if isinstance(type_, model.TensorType):
        if type_.dims is None:
            dims: Text = "None"
        else:
            dims = tuple_of([literal(dim) for dim in type_.dims])
        device: list[Text] = (
            [] if type_.device is None else [f"device={literal(type_.device)}"]
        )
        return "Tensor", [literal(type_.dtype), dims, *limit, *device]
    return "Bool", []

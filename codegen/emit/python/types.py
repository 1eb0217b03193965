"""How types and default values are spelled: as annotations, as expressions, as table entries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, fields
from typing import Any, get_args

from msgen.codegen.emit.facts import without_nil
from msgen.codegen.schema import model
from msgen.codegen.schema.model import Type, Value

from .layout import literal
from .module import Module

_BUILTINS: dict[type[object], str] = {
    model.BoolType: "bool",
    model.IntType: "int",
    model.FloatType: "float",
    model.StrType: "str",
    model.BytesType: "bytes",
}


def annotation(module: Module, type_: Type) -> str:
    """Spell a type as a Python annotation inside a class body."""
    builtin = module.names.builtin
    if type(type_) in _BUILTINS:
        return builtin(_BUILTINS[type(type_)])
    match type_:
        case model.AnyType():
            return module.names["Any"]
        case model.TensorType():
            return f"{module.names['torch']}.Tensor"
        case model.NullableType():
            return f"{annotation(module, type_.item)} | None"
        case model.UnionType():
            options = (annotation(module, option) for option in type_.options)
            return " | ".join(dict.fromkeys(options))
        case model.ListType():
            return f"{builtin('list')}[{annotation(module, type_.item)}]"
        case model.TupleType():
            inner = ", ".join(annotation(module, item) for item in type_.items)
            return f"{builtin('tuple')}[{inner}]"
        case model.DictType():
            key = annotation(module, type_.key)
            return f"{builtin('dict')}[{key}, {annotation(module, type_.value)}]"
        case model.StructType() | model.EnumType() | model.MessageType():
            return module.class_name(type_)
    raise TypeError(type_)


def tuple_text(items: Iterable[str]) -> str:
    """Write a tuple of any length."""
    texts = list(items)
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


def is_mutable(value: Value) -> bool:
    """Whether every instance needs a default of its own."""
    if isinstance(value, tuple):
        return any(map(is_mutable, value))
    return isinstance(value, (list, dict, model.StructDefault))


def value_text(module: Module, value: Value, type_: Type) -> str:
    """Write a default as a Python expression that makes a fresh value."""
    core = _core(type_, value)
    match value:
        case model.EnumDefault():
            assert isinstance(core, model.EnumType)
            return f"{module.class_name(core)}.{value.member}"
        case model.StructDefault():
            types = {f.name: f.type for f in module.schema.record(value.type).fields}
            given = (
                f"{name}={value_text(module, item, types[name])}"
                for name, item in value.fields
            )
            return f"{module.class_name(value.type)}({', '.join(given)})"
        case float():
            text = repr(value)
            name = text.lstrip("-")
            if name in ("inf", "nan"):
                return text.replace(name, module.names[name])
            return text.replace("e+", "e")  # as formatters write it
        case list():
            item = core.item if isinstance(core, model.ListType) else core  # `any`
            return f"[{', '.join(_item_text(module, each, item) for each in value)}]"
        case tuple():
            assert isinstance(core, model.TupleType)
            return tuple_text(
                _item_text(module, each, item)
                for each, item in zip(value, core.items, strict=True)
            )
        case dict():
            key, item = core, core
            if isinstance(core, model.DictType):
                key, item = core.key, core.value
            entries = (
                f"{value_text(module, k, key)}: {_item_text(module, v, item)}"
                for k, v in value.items()
            )
            return f"{{{', '.join(entries)}}}"
    return literal(value)


def _item_text(module: Module, value: Value, type_: Type) -> str:
    """Write an item of a default; an empty container with its type, which nothing else gives it."""
    core = _core(type_, value)
    if isinstance(core, (model.ListType, model.DictType)) and value in ([], {}):
        return f"{annotation(module, core)}()"
    return value_text(module, value, type_)


def _core(type_: Type, value: Value) -> Type:
    """Return what a value is of: the type itself, or the alternative that holds the value."""
    core = without_nil(type_)
    if not isinstance(core, model.UnionType):
        return core
    holders = (option for option in core.options if model.holds_value(option, value))
    return next(holders, core)


def table_type(module: Module, type_: Type) -> str:
    """Write a type as an entry of the description table.

    The table's classes have the parameters of the model's, but for what names a class.
    """
    table = module.names["table"]
    if isinstance(type_, (model.StructType, model.EnumType, model.MessageType)):
        arguments = [module.class_name(type_)]
        if isinstance(type_, model.EnumType):
            unknown = module.schema.enum(type_).unknown
            arguments += [f"unknown={arguments[0]}.{unknown}"] if unknown else []
    else:
        arguments = []
        for field in fields(type_):
            value = getattr(type_, field.name)
            if field.default is MISSING:
                arguments.append(_table_argument(module, value))
            elif value != field.default:
                arguments.append(f"{field.name}={_table_argument(module, value)}")
    name = type(type_).__name__.removesuffix("Type")
    return f"{table}.{'Plain' if name == 'Any' else name}({', '.join(arguments)})"


def _table_argument(module: Module, value: Any) -> str:
    """Write what a type is made of: types, names, numbers, tuples of them."""
    if isinstance(value, tuple):
        return tuple_text(_table_argument(module, each) for each in value)
    return (
        table_type(module, value)
        if isinstance(value, get_args(Type))
        else literal(value)
    )

"""How types and default values are spelled: as annotations, as expressions, as table entries."""

from __future__ import annotations

from collections.abc import Iterable

from msgen.codegen.emit.facts import without_nil
from msgen.codegen.schema import model
from msgen.codegen.schema.model import Type, Value

from .layout import literal
from .module import Module


def annotation(module: Module, type_: Type) -> str:
    """Spell a type as a Python annotation inside a class body."""
    builtin = module.names.builtin
    match type_:
        case model.BoolType():
            return builtin("bool")
        case model.IntType():
            return builtin("int")
        case model.FloatType():
            return builtin("float")
        case model.StrType():
            return builtin("str")
        case model.BytesType():
            return builtin("bytes")
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
        case _:
            return module.class_name(type_)


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
            fields = {f.name: f for f in module.schema.record(value.type).fields}
            given = (
                f"{name}={value_text(module, item, fields[name].type)}"
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
            item = core.item if isinstance(core, model.ListType) else model.AnyType()
            return f"[{', '.join(_item_text(module, each, item) for each in value)}]"
        case tuple():
            assert isinstance(core, model.TupleType)
            return tuple_text(
                _item_text(module, each, item)
                for each, item in zip(value, core.items, strict=True)
            )
        case dict():
            any_ = model.AnyType()
            types = (
                core if isinstance(core, model.DictType) else model.DictType(any_, any_)
            )
            entries = (
                f"{value_text(module, key, types.key)}: "
                f"{_item_text(module, item, types.value)}"
                for key, item in value.items()
            )
            return f"{{{', '.join(entries)}}}"
    return literal(value)


def _item_text(module: Module, value: Value, type_: Type) -> str:
    """Write an item of a default; an empty container with its type, which nothing else gives it."""
    core = _core(type_, value)
    if isinstance(core, (model.ListType, model.DictType)) and value in ([], {}):
        return f"{annotation(module, core)}()"
    return value_text(module, value, type_)


_CLASSES: dict[type[object], type[object]] = {
    model.EnumType: model.EnumDefault,
    model.ListType: list,
    model.TupleType: tuple,
    model.DictType: dict,
}


def _core(type_: Type, value: Value) -> Type:
    """Return what a value is of: the type itself, or the alternative that holds the value."""
    core = without_nil(type_)
    if not isinstance(core, model.UnionType):
        return core
    for option in core.options:
        if isinstance(value, model.StructDefault):
            if option == value.type:
                return option
        elif isinstance(value, _CLASSES.get(type(option), ())):
            return option
    return core


def table_type(module: Module, type_: Type) -> str:
    """Write a type as an entry of the description table."""

    def inside(types: Iterable[Type]) -> str:
        return tuple_text(table_type(module, each) for each in types)

    max_len = getattr(type_, "max_len", None)
    limit = [] if max_len is None else [f"max_len={max_len}"]
    match type_:
        case model.BoolType():
            name, arguments = "Bool", []
        case model.IntType():
            name, arguments = "Int", [literal(type_.width)]
        case model.FloatType():
            finite = ["finite=True"] if type_.finite else []
            name, arguments = "Float", [str(type_.bits), *finite]
        case model.StrType():
            name, arguments = "Str", limit
        case model.BytesType():
            name, arguments = "Bytes", limit
        case model.AnyType():
            name, arguments = "Plain", []
        case model.NullableType():
            name, arguments = "Nullable", [table_type(module, type_.item)]
        case model.ListType():
            name, arguments = "List", [table_type(module, type_.item), *limit]
        case model.TupleType():
            name, arguments = "Tuple", [inside(type_.items)]
        case model.DictType():
            entry = [table_type(module, each) for each in (type_.key, type_.value)]
            name, arguments = "Dict", [*entry, *limit]
        case model.UnionType():
            name, arguments = "Union", [inside(type_.options)]
        case model.EnumType():
            cls, unknown = module.class_name(type_), module.schema.enum(type_).unknown
            spare = [] if unknown is None else [f"unknown={cls}.{unknown}"]
            name, arguments = "Enum", [cls, *spare]
        case model.StructType():
            name, arguments = "Struct", [module.class_name(type_)]
        case model.MessageType():
            name, arguments = "Message", [module.class_name(type_)]
        case model.TensorType():
            dims = (
                "None" if type_.dims is None else tuple_text(map(literal, type_.dims))
            )
            device = [f"device={literal(type_.device)}"] if type_.device else []
            name, arguments = "Tensor", [literal(type_.dtype), dims, *limit, *device]
    return f"{module.names['table']}.{name}({', '.join(arguments)})"

"""Emits enums and dataclasses."""

from __future__ import annotations

from msgen.codegen.schema import model
from msgen.codegen.schema.model import Type, Value
from msgen.codegen.schema.names import base_name

from .context import ModuleContext
from .docstrings import add_docstring
from .layout import Code, Text, bracket, comprehension, flat, literal, tuple_of


def emit_enum(context: ModuleContext, enum: model.Enum) -> str:
    """Emit an IntEnum and the dict that finds its members by number."""
    code = Code()
    int_enum = context.names.use("enum", "IntEnum")
    code.line(f"class {enum.name}({int_enum}):")
    with code.indented():
        add_docstring(code, enum.doc)
        if enum.doc:
            code.blank()
        for member in enum.members:
            code.line(f"{member.name} = {member.number}")
            add_docstring(code, _doc(member.doc, member.deprecated))
    code.blank()
    code.blank()
    table = context.members_by_number(enum.type)
    members = comprehension("{", "each.value: each", f"for each in {enum.name}", "}")
    code.statement(f"{table} = ", members)
    return "\n".join(code.lines)


def emit_record(context: ModuleContext, record: model.Record) -> str:
    """Emit the dataclass of a struct or message."""
    code = Code()
    dataclass = context.names.use("dataclasses", "dataclass")
    code.line(f"@{dataclass}({', '.join(_dataclass_options(record))})")
    is_message = isinstance(record, model.Message)
    base = f"({base_name(context.group.name)})" if is_message else ""
    code.line(f"class {record.name}{base}:")
    with code.indented():
        doc = _doc(record.doc, isinstance(record, model.Message) and record.deprecated)
        add_docstring(code, doc)
        if doc and record.live_fields:
            code.blank()
        for field in record.live_fields:
            _emit_field(code, context, record, field)
        if not doc and not record.live_fields:
            code.line("pass")
        if has_own_equality(record):
            code.blank()
            _emit_equality(code, context, record)
    return "\n".join(code.lines)


def has_own_equality(record: model.Record) -> bool:
    """Whether a record holds tensors outside of structs, which dataclasses cannot compare."""
    return any(
        isinstance(part, model.TensorType)
        for field in record.live_fields
        for part in model.walk(field.type)
    )


def is_keyword_only(record: model.Record) -> bool:
    """Whether a field without a default follows one with a default."""
    defaults = [field.default is not None for field in record.live_fields]
    return defaults != sorted(defaults)


def _dataclass_options(record: model.Record) -> list[str]:
    options = ["slots=True"]
    if is_keyword_only(record):
        options.append("kw_only=True")
    if has_own_equality(record):
        options.append("eq=False")
    return options


def _doc(doc: str, deprecated: bool, tensor: str = "") -> str:
    parts = [
        part
        for part in (doc.strip(), tensor, "Deprecated." if deprecated else "")
        if part
    ]
    return ("\n\n" if "\n" in doc.strip() else " ").join(parts)


def _tensor_doc(type_: Type) -> str:
    tensors = [part for part in model.walk(type_) if isinstance(part, model.TensorType)]
    if not tensors:
        return ""
    described = " or ".join(
        f"{each.dtype if each.dtype != 'any' else 'any dtype'}"
        f"[{', '.join(map(str, ('*',) if each.dims is None else each.dims))}]"
        for each in tensors
    )
    device = " The worker stages it on its own device." if tensors[0].device else ""
    return f"Tensor {described}.{device}"


def _emit_field(
    code: Code, context: ModuleContext, record: model.Record, field: model.Field
) -> None:
    start = f"{field.name}: {annotation(context, field.type)}"
    if field.default is None and not code.fits(start) and _is_list_of_union(field.type):
        _emit_long_list(code, start)
    elif field.default is None:
        code.line(start)
    else:
        default = _field_default(context, record, field.default.value, field.type)
        code.statement(f"{start} = ", default)
    add_docstring(code, _doc(field.doc, field.deprecated, _tensor_doc(field.type)))


def _is_list_of_union(type_: Type) -> bool:
    return isinstance(type_, model.ListType) and isinstance(type_.item, model.UnionType)


def _emit_long_list(code: Code, text: str) -> None:
    """Emit `name: list[A | B]` with its alternatives on lines of their own: batches grow long."""
    head, _, inner = text.removesuffix("]").partition("[")
    code.chain(f"{head}[", inner.split(" | "), "|", "]")


def annotation(context: ModuleContext, type_: Type) -> str:
    """Spell a type as a Python annotation inside a class body."""
    names = context.names
    if isinstance(type_, model.NullableType):
        return f"{annotation(context, type_.item)} | None"
    if isinstance(type_, model.UnionType):
        options = [annotation(context, option) for option in type_.options]
        return " | ".join(dict.fromkeys(options))
    if isinstance(type_, model.ListType):
        return f"{names.builtin('list')}[{annotation(context, type_.item)}]"
    if isinstance(type_, model.TupleType):
        inner = ", ".join(annotation(context, item) for item in type_.items)
        return f"{names.builtin('tuple')}[{inner}]"
    if isinstance(type_, model.DictType):
        key, value = annotation(context, type_.key), annotation(context, type_.value)
        return f"{names.builtin('dict')}[{key}, {value}]"
    if isinstance(type_, model.TensorType):
        return f"{names.module('torch')}.Tensor"
    if isinstance(type_, (model.StructType, model.EnumType, model.MessageType)):
        return context.class_name(type_)
    if isinstance(type_, model.AnyType):
        return names.use("typing", "Any")
    builtins: dict[type[object], str] = {
        model.BoolType: "bool",
        model.IntType: "int",
        model.FloatType: "float",
        model.StrType: "str",
        model.BytesType: "bytes",
    }
    return names.builtin(builtins[type(type_)])


def _field_default(
    context: ModuleContext, record: model.Record, value: Value, type_: Type
) -> Text:
    """Write what stands behind `=`; a fresh object for every instance where it is mutable."""
    if not _is_mutable(value):
        return value_text(context, value, type_)
    field = context.names.use("dataclasses", "field")
    if value == [] or value == {}:
        kind = "list" if isinstance(value, list) else "dict"
        return bracket(
            f"{field}(", [f"default_factory={context.names.builtin(kind)}"], ")"
        )
    if isinstance(value, model.StructDefault) and not value.fields:
        cls = context.class_name(value.type)
        factory = (
            cls
            if context.is_declared_before(value.type, record)
            else f"lambda: {cls}()"
        )
        return bracket(f"{field}(", [f"default_factory={factory}"], ")")
    text = value_text(context, value, type_)
    return bracket(f"{field}(", [f"default_factory=lambda: {flat(text)}"], ")")


def _is_mutable(value: Value) -> bool:
    if isinstance(value, tuple):
        return any(_is_mutable(item) for item in value)
    return isinstance(value, (list, dict, model.StructDefault))


def value_text(context: ModuleContext, value: Value, type_: Type) -> Text:
    """Write a default as a Python expression that makes a fresh value."""
    core = type_.item if isinstance(type_, model.NullableType) else type_
    if isinstance(core, model.UnionType):
        core = next((each for each in core.options if _holds_value(each, value)), core)
    if isinstance(value, model.EnumDefault):
        assert isinstance(core, model.EnumType)
        return f"{context.class_name(core)}.{value.member}"
    if isinstance(value, model.StructDefault):
        fields = {each.name: each for each in context.schema.record(value.type).fields}
        items = [
            f"{name}={flat(value_text(context, item, fields[name].type))}"
            for name, item in value.fields
        ]
        return bracket(f"{context.class_name(value.type)}(", items, ")")
    if isinstance(value, float):
        return _float_text(context, value)
    if isinstance(value, list):
        item_type = core.item if isinstance(core, model.ListType) else model.AnyType()
        return bracket(
            "[", [_item_text(context, each, item_type) for each in value], "]"
        )
    if isinstance(value, tuple):
        assert isinstance(core, model.TupleType)
        items = [
            flat(_item_text(context, each, item))
            for each, item in zip(value, core.items, strict=True)
        ]
        return tuple_of(items)
    if isinstance(value, dict):
        key, item = (
            (core.key, core.value)
            if isinstance(core, model.DictType)
            else (model.AnyType(), model.AnyType())
        )
        entries = [
            f"{flat(value_text(context, k, key))}: {flat(_item_text(context, v, item))}"
            for k, v in value.items()
        ]
        return bracket("{", entries, "}")
    return literal(value)


def _item_text(context: ModuleContext, value: Value, type_: Type) -> Text:
    """Write an item of a default; an empty container with its type, which nothing else gives it."""
    core = type_.item if isinstance(type_, model.NullableType) else type_
    if not value and isinstance(value, (list, dict)):
        if isinstance(core, model.UnionType):
            core = next(each for each in core.options if _holds_value(each, value))
        if isinstance(core, (model.ListType, model.DictType)):
            return f"{annotation(context, core)}()"
    return value_text(context, value, type_)


def _holds_value(type_: Type, value: Value) -> bool:
    kinds: dict[type[object], type[object] | tuple[type[object], ...]] = {
        model.EnumType: model.EnumDefault,
        model.StructType: model.StructDefault,
        model.ListType: list,
        model.TupleType: tuple,
        model.DictType: dict,
    }
    kind = kinds.get(type(type_))
    if isinstance(type_, model.StructType) and isinstance(value, model.StructDefault):
        return type_ == value.type
    return kind is not None and isinstance(value, kind)


def _float_text(context: ModuleContext, value: float) -> str:
    text = repr(value)
    if text.lstrip("-") in ("inf", "nan"):
        sign = "-" if text[0] == "-" else ""
        return f"{sign}{context.names.use('math', text.lstrip('-'))}"
    return text.replace("e+", "e")  # as formatters write it


def _emit_equality(code: Code, context: ModuleContext, record: model.Record) -> None:
    """Emit `__eq__` that compares tensors by dtype, shape and content."""
    names = context.names
    bool_, object_ = names.builtin("bool"), names.builtin("object")
    same = context.tensors("same")
    mine, theirs = (
        tuple_of([f"{who}.{field.name}" for field in record.live_fields])
        for who in ("self", "other")
    )
    code.line(f"def __eq__(self, other: {object_}) -> {bool_}:")
    with code.indented():
        code.line(f"if not isinstance(other, {record.name}):")
        with code.indented():
            code.line("return NotImplemented")
        code.statement("return ", bracket(f"{same}(", [mine, theirs], ")"))

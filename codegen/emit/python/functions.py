"""Views of encoders and decoders: straight-line functions between objects and arrays of slots.

They test every value for exactly the type and range that its field declares. Whatever fails a
test raises `Unfit`, and the runtime's table codec then either converts the value (a numpy
scalar in a list, a subclass) or says where it does not fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgen.codegen.emit.facts import takes_nil, without_nil
from msgen.codegen.schema import model

from .checks import Check
from .classes import is_keyword_only
from .module import Module, local_name
from .types import tuple_text, value_text
from .values import Helper, Values


class FieldCode(NamedTuple):
    """What a function does with one field.

    Attributes:
        kind: `number`: of its class or converted, and within its limits; `scalar`: of its class, or
            nil for the default; `checked`: looked through and left as it is; `converted`: made by
            ``expression``; `nullable`: so made where it is not None.
        local: the variable that holds the value.
        source: where an encoder takes it from, `msg.uid`.
        declared: `: Any` where a type checker would take a test for one that always holds.
        cls: the class of a number or scalar.
        limits: the condition that it is out of range, empty where each will do.
        default: what a decoder puts where the slot holds ``absent``; empty without a default.
    """

    kind: str
    local: str
    source: str = ""
    declared: str = ""
    cls: str = ""
    limits: str = ""
    check: Check | None = None
    expression: str = ""
    default: str = ""
    absent: str = "None"


class FunctionView(NamedTuple):
    """The encoder or decoder of a record.

    Attributes:
        argument: the object to encode, or what a decoder has made: `msg` or `struct`.
        parameters: those behind the first, each with a comma before it.
        slots: an encoder's result; the variables that a decoder spreads the array over.
        padding: what stands for the last slots where an older writer wrote none.
        arguments: of the class, for the object that a decoder makes.
        sizes_differ: the condition that a dimension symbol has two sizes, where a look at the
            fields' own tensors tells.
        sizes_check: the call that finds out elsewhere.
    """

    name: str
    record: model.Record
    argument: str
    parameters: str
    is_recursive: bool
    fields: list[FieldCode]
    slots: list[str]
    padding: str
    arguments: str
    sizes_differ: str
    sizes_check: str
    helpers: list[Helper]


def function_view(module: Module, record: model.Record, encoding: bool) -> FunctionView:
    """Return the encoder or the decoder of a record."""
    values = Values(module, record, encoding)
    is_struct = not isinstance(record, model.Message)
    argument = "struct" if is_struct and encoding else "msg"
    parameters = values.frames_parameter() if values.needs_frames else []
    if module.facts.has_depth(record):
        parameters.append(f"depth: int = {module.names['MAX_DEPTH']}")
    fields = [
        _encoded(values, field, argument) if encoding else _decoded(values, field)
        for field in record.live_fields
    ]
    padding = [_padding(module, f) for f in record.fields if f.since > 1]
    return FunctionView(
        module.function(values.verb, record.type),
        record,
        argument,
        "".join(f", {each}" for each in parameters),
        values.is_recursive,
        fields,
        list(_slots(values)),
        f", {tuple_text(padding)}" if padding else "",
        _arguments(record),
        *_symbols(module, record, argument),
        list(filter(None, values.helpers)),
    )


def _slots(values: Values) -> Iterator[str]:
    """Yield what an encoder returns, or the variables that a decoder spreads an array over."""
    record, encoding = values.record, values.encoding
    if isinstance(record, model.Message):
        yield str(record.tag) if encoding else "tag"
    for field in record.fields:
        local = local_name(field.name)
        if field.removed:
            yield "None" if encoding else "_"
        elif values.checker.is_single(field.type):
            yield f"{values.module.names['Single']}({local})"
        else:
            yield local


def _encoded(values: Values, field: model.Field, argument: str) -> FieldCode:
    """Return the code of a field to be encoded."""
    local, type_ = local_name(field.name), field.type
    source = f"{argument}.{field.name}"
    kinds = (model.BoolType, model.EnumType)
    is_final = any(isinstance(part, kinds) for part in model.walk(type_))
    declared = f": {values.module.names['Any']}" if is_final else ""
    if isinstance(type_, (model.IntType, model.FloatType, model.BoolType)):
        tests = values.checker.scalar_tests(local, type_) or []
        cls = values.checker.class_of(type_)
        return FieldCode("number", local, source, declared, cls, " or ".join(tests[1:]))
    if values.is_checked(type_):
        check = values.checker.check(local, type_)
        return FieldCode("checked", local, source, declared, check=check)
    if isinstance(type_, model.NullableType):
        declared = f": {values.module.names['Any']}"
        text = values.expression(local, type_.item, (field.name,))
        return FieldCode("nullable", local, source, declared, expression=text)
    text = values.expression(source, type_, (field.name,))
    return FieldCode("converted", local, expression=text)


def _decoded(values: Values, field: model.Field) -> FieldCode:
    """Return the code of a field to be decoded."""
    module, local, type_ = values.module, local_name(field.name), field.type
    default, absent = "", "None"
    if field.default is not None:
        value = field.default.value
        if not takes_nil(type_):
            default = value_text(module, value, type_)
        elif field.since > 1 and value is not None:
            default = value_text(module, value, type_)
            absent = module.names["MISSING"]
    if values.checker.is_plain(type_):
        tests = values.checker.scalar_tests(local, type_)
        if default and tests and absent == "None":
            limits = " or ".join(tests[1:])
            cls = values.checker.class_of(type_)
            return FieldCode("scalar", local, cls=cls, limits=limits, default=default)
        check = values.checker.check(local, type_)
        return FieldCode("checked", local, check=check, default=default, absent=absent)
    kind = "nullable" if isinstance(type_, model.NullableType) else "converted"
    text = values.expression(local, without_nil(type_), (field.name,))
    return FieldCode(kind, local, expression=text, default=default, absent=absent)


def _padding(module: Module, field: model.Field) -> str:
    """The slot to put where an older writer wrote none: nil, unless nil is a value."""
    assert field.default is not None
    is_value = takes_nil(field.type) and field.default.value is not None
    return module.names["MISSING"] if is_value else "None"


def _arguments(record: model.Record) -> str:
    names = [field.name for field in record.live_fields]
    if is_keyword_only(record):
        return ", ".join(f"{name}={local_name(name)}" for name in names)
    return ", ".join(map(local_name, names))


def _symbols(module: Module, record: model.Record, argument: str) -> tuple[str, str]:
    """Return the test that one symbol has one size, as a condition or as a call."""
    sizes: list[tuple[str, str]] = []
    indirect: set[str] = set()
    shared: set[str] = set()
    for field in record.live_fields:
        for part in model.walk(field.type):
            dims = part.dims or () if isinstance(part, model.TensorType) else ()
            for axis, dim in enumerate(dims):
                if not isinstance(dim, str) or dim == "_":
                    continue
                if part is not field.type:
                    indirect.add(dim)
                is_repeated = part not in (field.type, without_nil(field.type))
                if is_repeated or any(dim == other for other, _ in sizes):
                    shared.add(dim)
                sizes.append((dim, f"{argument}.{field.name}.shape[{axis}]"))
    if shared & indirect:
        # Sizes inside nullables and containers: the table's own walk compares them.
        check, table = module.names["check_symbols"], module.records(module.group.name)
        return "", f"{check}({argument}, {table}[{record.name}])"
    first: dict[str, str] = {}
    pairs = [(size, first.setdefault(dim, size)) for dim, size in sizes]
    return " or ".join(f"{size} != {one}" for size, one in pairs if size != one), ""

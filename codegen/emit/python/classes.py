"""Views of dataclasses; entries of the description table; the arguments of `CODEC`."""

from __future__ import annotations

from dataclasses import dataclass

from msgen.codegen.emit.facts import groups_of_structs, has_tensors
from msgen.codegen.schema import model

from .layout import literal
from .module import Module
from .types import annotation, is_mutable, table_type, tuple_text, value_text


@dataclass(frozen=True)
class FieldView:
    name: str
    annotation: str
    default: str
    """What stands behind `=`, empty for a required field."""
    doc: str


@dataclass(frozen=True)
class ClassView:
    """A dataclass; one of tensors has its own `__eq__`."""

    name: str
    is_message: bool
    doc: str
    options: str
    fields: tuple[FieldView, ...]
    has_equality: bool


def class_view(module: Module, record: model.Record) -> ClassView:
    is_message = isinstance(record, model.Message)
    options = ["slots=True"]
    if is_keyword_only(record):
        options.append("kw_only=True")
    if has_tensors(record):
        options.append("eq=False")
    return ClassView(
        record.name,
        is_message,
        full_doc(record.doc, getattr(record, "deprecated", False)),
        ", ".join(options),
        tuple(
            FieldView(
                field.name,
                annotation(module, field.type),
                _default(module, record, field),
                full_doc(field.doc, field.deprecated, _tensor_doc(field.type)),
            )
            for field in record.live_fields
        ),
        has_tensors(record),
    )


def is_keyword_only(record: model.Record) -> bool:
    """Whether a field without a default follows one with a default."""
    defaults = [field.default is not None for field in record.live_fields]
    return defaults != sorted(defaults)


def full_doc(doc: str, deprecated: bool, tensor: str = "") -> str:
    """Return the text of a docstring: a `doc:` and what the schema says beside it."""
    parts = (doc.strip(), tensor, "Deprecated." if deprecated else "")
    return ("\n\n" if "\n" in doc.strip() else " ").join(filter(None, parts))


def _tensor_doc(type_: model.Type) -> str:
    tensors = [part for part in model.walk(type_) if isinstance(part, model.TensorType)]
    if not tensors:
        return ""
    described = " or ".join(
        f"{'any dtype' if each.dtype == 'any' else each.dtype}"
        f"[{', '.join(map(str, ('*',) if each.dims is None else each.dims))}]"
        for each in tensors
    )
    device = " The worker stages it on its own device." if tensors[0].device else ""
    return f"Tensor {described}.{device}"


def _default(module: Module, record: model.Record, field: model.Field) -> str:
    """Write a field's default; a fresh object for every instance where it is mutable."""
    if field.default is None:
        return ""
    value = field.default.value
    text = value_text(module, value, field.type)
    if not is_mutable(value):
        return text
    if value == [] or value == {}:
        factory = module.names.builtin(type(value).__name__)
    elif isinstance(value, model.StructDefault) and not value.fields:
        cls = text.removesuffix("()")
        factory = (
            cls
            if _is_declared_before(module, value.type, record)
            else f"lambda: {text}"
        )
    else:
        factory = f"lambda: {text}"
    return f"{module.names['field']}(default_factory={factory})"


def _is_declared_before(
    module: Module, ref: model.StructType, record: model.Record
) -> bool:
    """Whether a struct's class exists when a record's class body runs."""
    if ref.group != module.group.name or isinstance(record, model.Message):
        return True
    order = [struct.name for struct in module.group.structs]
    return order.index(ref.name) < order.index(record.name)


def table_entries(module: Module) -> list[str]:
    """Return the entries of the description table, those of imported structs first."""
    included = (module.records(name) for name in groups_of_structs(module.group))
    own = (
        f"{each.name}: {_table_record(module, each)}" for each in module.group.records
    )
    return [*(f"**{name}" for name in included), *own]


def _table_record(module: Module, record: model.Record) -> str:
    fields = (_table_field(module, field) for field in record.fields)
    arguments = [literal(record.name), tuple_text(fields)]
    if isinstance(record, model.Message):
        arguments.append(f"tag={record.tag}")
    if module.facts.is_recursive(record):
        arguments.append("recursive=True")
    return f"{module.names['table']}.Record({', '.join(arguments)})"


def _table_field(module: Module, field: model.Field) -> str:
    arguments = [literal(field.name), table_type(module, field.type)]
    if field.default is not None:
        value = field.default.value
        text = value_text(module, value, field.type)
        is_empty = value == [] or value == {}
        factory = type(value).__name__ if is_empty else f"lambda: {text}"
        arguments.append(f"default={factory}")
    if field.since > 1:
        arguments.append(f"since={field.since}")
    if field.removed:
        arguments.append("removed=True")
    return f"{module.names['table']}.Field({', '.join(arguments)})"


def codec_arguments(module: Module) -> list[str]:
    """Return the arguments of `CODEC`."""
    group, facts = module.group, module.facts
    arguments = [
        f"group={literal(group.name)}",
        f"receiver={literal(group.receiver)}",
        f"version={group.version}",
        f"fingerprint={literal(facts.fingerprints.of(group))}",
        f"records={module.records(group.name)}",
        f"encoders={module.dispatch('encode', module.all_messages)}",
        f"decoders={module.dispatch('decode', module.all_messages)}",
    ]
    former = [
        f"{module.names['table']}.Former({literal(each.fingerprint)}, {literal(each.label)}, "
        f"{literal(each.difference)})"
        for each in facts.layouts.former(group, facts.fingerprints)
    ]
    if former:
        arguments.append(f"former=[{', '.join(former)}]")
    removed = [f"{m.tag}: {literal(m.name)}" for m in group.messages if m.removed]
    if removed:
        arguments.append(f"removed={{{', '.join(removed)}}}")
    return arguments + [f"batch={m.name}" for m in group.live_messages if m.is_batch]

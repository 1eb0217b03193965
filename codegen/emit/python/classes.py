"""What stands in dataclasses; entries of the description table; the arguments of `CODEC`."""

from __future__ import annotations

from msgen.codegen.emit.facts import groups_of_structs, has_tensors
from msgen.codegen.schema import model

from .layout import literal
from .module import Module
from .types import is_mutable, table_type, tuple_text, value_text


def class_options(record: model.Record) -> str:
    """Return the arguments of a record's `@dataclass`; one of tensors has its own `__eq__`."""
    options = ["slots=True"]
    if is_keyword_only(record):
        options.append("kw_only=True")
    if has_tensors(record):
        options.append("eq=False")
    return ", ".join(options)


def is_keyword_only(record: model.Record) -> bool:
    """Whether a field without a default follows one with a default."""
    defaults = [field.default is not None for field in record.live_fields]
    return defaults != sorted(defaults)


def full_doc(declared: model.Record | model.Field | model.EnumMember) -> str:
    """Return the text of a docstring: a `doc:` and what the schema says beside it."""
    doc = declared.doc.strip()
    tensor = _tensor_doc(declared.type) if isinstance(declared, model.Field) else ""
    deprecated = "Deprecated." if getattr(declared, "deprecated", False) else ""
    return ("\n\n" if "\n" in doc else " ").join(
        filter(None, (doc, tensor, deprecated))
    )


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


def field_default(module: Module, record: model.Record, field: model.Field) -> str:
    """Write a field's default, if any; a fresh object for every instance where it is mutable."""
    if field.default is None:
        return ""
    value = field.default.value
    text = value_text(module, value, field.type)
    if not is_mutable(value):
        return text
    factory = f"lambda: {text}"
    if value == [] or value == {}:
        factory = module.names.builtin(type(value).__name__)
    elif _is_class_call(module, record, value):
        factory = text.removesuffix("()")
    return f"{module.names['field']}(default_factory={factory})"


def _is_class_call(module: Module, record: model.Record, value: model.Value) -> bool:
    """Whether a default is a class without arguments, which exists when a class body runs."""
    if not isinstance(value, model.StructDefault) or value.fields:
        return False
    if value.type.group != module.group.name or isinstance(record, model.Message):
        return True
    order = [struct.name for struct in module.group.structs]
    return order.index(value.type.name) < order.index(record.name)


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

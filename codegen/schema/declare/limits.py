"""A field's limits, put where they belong in its type."""

from __future__ import annotations

from dataclasses import replace

from msgen.codegen.schema import model
from msgen.codegen.schema.errors import Problems
from msgen.codegen.schema.model import Type
from msgen.codegen.schema.rule import Rule
from msgen.codegen.schema.sections import Section
from msgen.codegen.schema.texts import shown

_WITH_LENGTH = (
    model.StrType,
    model.BytesType,
    model.ListType,
    model.DictType,
    model.TensorType,
)


def apply_limits(type_: Type, field: Section, problems: Problems) -> Type:
    """Put a field's `max_len`, `finite` and `device` where they belong in its type."""
    core = type_.item if isinstance(type_, model.NullableType) else type_
    limited = core
    if "max_len" in field:
        if isinstance(core, _WITH_LENGTH):
            limited = replace(core, max_len=field.count("max_len"))
        else:
            _misplaced(
                "max_len",
                "str, bytes, list, dict and tensor fields",
                core,
                field,
                problems,
            )
    if "device" in field:
        if field.text("device") != "worker":
            problems.add(
                field.place_of("device"),
                BAD_DEVICE,
                f"device {shown(field.text('device'))} of field '{field.name}'; the only device is "
                "'worker'",
            )
        else:
            placed = model.with_parts(limited, model.TensorType, device="worker")
            if placed == limited:
                _misplaced("device", "fields that hold tensors", core, field, problems)
            limited = placed
    if field.flag("finite"):
        finite = model.with_parts(limited, model.FloatType, finite=True)
        if finite == limited:
            _misplaced("finite", "fields that hold floats", core, field, problems)
        limited = finite
    return model.NullableType(limited) if core is not type_ else limited


def _misplaced(
    key: str, fits: str, type_: Type, field: Section, problems: Problems
) -> None:
    problems.add(
        field.key_place(key),
        MISPLACED_LIMIT,
        f"'{key}' on field '{field.name}' of type '{model.spell(type_)}'; it is for {fits}: "
        "remove it",
    )


BAD_DEVICE = Rule(
    "bad-device",
    "`device` names something other than `worker`",
    "Tensors arrive on the CPU; the only other place that a runtime can put them is the device of "
    "the worker that receives them.",
    "write `device: worker`, or remove the key.",
    apply_limits,
)
MISPLACED_LIMIT = Rule(
    "misplaced-limit",
    "a limit stands on a field whose type it does not fit",
    "It would have no effect, while the schema says that it has.",
    "remove it, or put it on the field it is for: `max_len` on str, bytes, list, dict and tensor, "
    "`finite` on fields that hold floats, `device` on fields that hold tensors.",
    _misplaced,
)

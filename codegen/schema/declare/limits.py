"""A field's limits, put where they belong in its type."""

from __future__ import annotations

from dataclasses import replace

from msgen.codegen.schema import model
from msgen.codegen.schema.errors import Problems
from msgen.codegen.schema.model import Type
from msgen.codegen.schema.sections.section import Section
from msgen.codegen.schema.texts import shown


def apply_limits(type_: Type, field: Section, problems: Problems) -> Type:
    """Put a field's `max_len`, `finite` and `device` where they belong in its type."""
    core = type_.item if isinstance(type_, model.NullableType) else type_
    limited = core
    if "max_len" in field:
        if isinstance(
            core,
            (
                model.StrType,
                model.BytesType,
                model.ListType,
                model.DictType,
                model.TensorType,
            ),
        ):
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
                "bad-device",
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
        "misplaced-limit",
        f"'{key}' on field '{field.name}' of type '{model.spell(type_)}'; it is for {fits}: "
        "remove it",
    )

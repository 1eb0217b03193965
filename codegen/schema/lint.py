"""Lint: what is valid in a schema but most likely not meant."""

from __future__ import annotations

from collections.abc import Iterator

from . import model
from .errors import Problem
from .rule import WARNING, Rule


def lint_schema(schema: model.Schema) -> list[Problem]:
    """Return the findings of all lint rules, sorted by place."""
    findings = list(_unused_types(schema))
    for group in schema.groups.values():
        findings += _unused_imports(group)
        findings += _empty_groups(group)
    return sorted(findings)


def _unused_imports(group: model.Group) -> Iterator[Problem]:
    used = {
        part.group
        for record in (*group.structs, *group.messages)
        for field in record.fields
        for part in model.walk(field.type)
        if isinstance(part, (model.StructType, model.EnumType))
    }
    for name, place in group.imports:
        if name not in used:
            yield Problem(
                place,
                UNUSED_IMPORT,
                f"group '{group.name}' imports '{name}' but uses nothing of it; remove the import",
            )


def _empty_groups(group: model.Group) -> Iterator[Problem]:
    if not (group.messages or group.structs or group.enums):
        yield Problem(
            group.place,
            EMPTY_GROUP,
            f"group '{group.name}' declares no message, struct or enum; add one or delete the file",
        )


def _unused_types(schema: model.Schema) -> Iterator[Problem]:
    reached: set[model.Type] = set()
    records: list[model.Record] = []
    for group in schema.groups.values():
        records += group.messages
    while records:
        held = {
            part
            for field in records.pop().fields
            for part in model.walk(field.type)
            if isinstance(part, (model.StructType, model.EnumType))
        }
        new = held - reached
        reached |= new
        records += [schema.record(r) for r in new if isinstance(r, model.StructType)]
    for group in schema.groups.values():
        for what, declared in (("struct", group.structs), ("enum", group.enums)):
            for each in declared:
                if each.type not in reached:
                    yield Problem(
                        each.place,
                        UNUSED_TYPE,
                        f"{what} '{each.name}' is in no message; use it or remove it",
                    )


UNUSED_IMPORT = Rule(
    "unused-import",
    "an import of which nothing is used",
    "Readers look for a use that is not there, and a group that is imported cannot import this one.",
    "remove the import.",
    _unused_imports,
    WARNING,
)
EMPTY_GROUP = Rule(
    "empty-group",
    "a group that declares nothing",
    "Its module has nothing that anybody could use; most likely the group is not finished.",
    "add a message, struct or enum, or delete the file.",
    _empty_groups,
    WARNING,
)
UNUSED_TYPE = Rule(
    "unused-type",
    "a struct or enum that is in no message",
    "It is never sent. Most likely a field is missing that should hold it, or it was forgotten "
    "when the last one was removed.",
    "use it in a message, or remove it.",
    _unused_types,
    WARNING,
)

"""Lint: what is valid in a schema but most likely not meant."""

from __future__ import annotations

from collections.abc import Iterator

from . import model
from .errors import Place, Problem

UNUSED_IMPORT = "unused-import"
UNUSED_TYPE = "unused-type"
EMPTY_GROUP = "empty-group"


def lint(schema: model.Schema) -> list[Problem]:
    """Return the findings of all lint rules, sorted by place."""
    findings: list[Problem] = []
    for group in schema.groups.values():
        findings += _unused_imports(group)
        findings += _empty_groups(group)
    findings += _unused_types(schema)
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
            yield _finding(
                place,
                UNUSED_IMPORT,
                f"group '{group.name}' imports '{name}' but uses nothing of it; remove the import",
            )


def _empty_groups(group: model.Group) -> Iterator[Problem]:
    if not (group.messages or group.structs or group.enums):
        yield _finding(
            group.place,
            EMPTY_GROUP,
            f"group '{group.name}' declares no message, struct or enum; add one or delete the file",
        )


def _unused_types(schema: model.Schema) -> Iterator[Problem]:
    reached: set[model.Type] = set()
    todo: list[model.Record] = [
        m for group in schema.groups.values() for m in group.messages
    ]
    while todo:
        for field in todo.pop().fields:
            for part in model.walk(field.type):
                if (
                    isinstance(part, (model.StructType, model.EnumType))
                    and part not in reached
                ):
                    reached.add(part)
                    if isinstance(part, model.StructType):
                        todo.append(schema.record(part))
    for group in schema.groups.values():
        for what, declared in (("struct", group.structs), ("enum", group.enums)):
            for each in declared:
                if each.type not in reached:
                    yield _finding(
                        each.place,
                        UNUSED_TYPE,
                        f"{what} '{each.name}' is in no message; use it or remove it",
                    )


def _finding(place: Place, rule: str, message: str) -> Problem:
    return Problem(place, rule, message, "warning")

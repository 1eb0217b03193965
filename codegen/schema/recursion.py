"""Types that contain themselves: which are fine, which no value can have, and which need a depth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from . import model
from .cycles import find_cycles
from .errors import Problems
from .graph import components
from .model import Record, Type


def check_recursion(groups: Mapping[str, model.Group], problems: Problems) -> None:
    """Report records of which no finite value exists, and defaults that build themselves."""
    records = _records(groups)
    finite: set[model.RecordKey] = set()
    while True:
        found = {
            key
            for key, record in records.items()
            if key not in finite
            and all(_is_finite(f.type, finite) for f in record.live_fields)
        }
        if not found:
            break
        finite |= found
    _report_infinite(records, finite, problems)
    _check_default_recursion(records, problems)


def recursive_records(schema: model.Schema) -> frozenset[model.RecordKey]:
    """Return the records that can be reached from their own fields."""
    edges = {
        key: [ref for f in record.live_fields for ref in _references(f.type)]
        for key, record in _records(schema.groups).items()
    }
    return frozenset(
        key
        for component in components(edges)
        for key in component
        if len(component) > 1 or key in edges[key]
    )


def _records(groups: Mapping[str, model.Group]) -> dict[model.RecordKey, Record]:
    return {
        (g.name, record.name): record for g in groups.values() for record in g.records
    }


def _references(type_: Type) -> Iterator[model.RecordKey]:
    for part in model.walk(type_):
        if isinstance(part, (model.StructType, model.MessageType)):
            yield part.group, part.name


def _is_finite(type_: Type, finite: set[model.RecordKey]) -> bool:
    """Say whether a type has a finite value, given the records that have one."""
    if isinstance(type_, (model.StructType, model.MessageType)):
        return (type_.group, type_.name) in finite
    if isinstance(type_, model.TupleType):
        return all(_is_finite(item, finite) for item in type_.items)
    if isinstance(type_, model.UnionType):
        return any(_is_finite(option, finite) for option in type_.options)
    return True


def _report_infinite(
    records: Mapping[model.RecordKey, Record],
    finite: set[model.RecordKey],
    problems: Problems,
) -> None:
    """Report the circles among the records without a finite value, not those that lead there."""
    steps: dict[model.RecordKey, dict[model.RecordKey, str]] = {
        key: {
            target: f.name
            for f in reversed(record.live_fields)
            for target in _endless(f.type, finite)
        }
        for key, record in records.items()
        if key not in finite
    }
    for cycle in find_cycles(steps):
        path = [f"{a[1]}.{steps[a][b]}" for a, b in pairwise(cycle)]
        problems.add(
            min(records[key].place for key in cycle),
            "infinite-type",
            f"'{cycle[0][1]}' contains itself without end: {' -> '.join(path)} -> "
            f"{cycle[0][1]}; make one of these fields nullable with '?' or a list",
        )


def _endless(type_: Type, finite: set[model.RecordKey]) -> Iterator[model.RecordKey]:
    """Yield the records for which a type has no finite value."""
    if isinstance(type_, (model.StructType, model.MessageType)):
        if (type_.group, type_.name) not in finite:
            yield type_.group, type_.name
    elif isinstance(type_, model.TupleType) or (
        isinstance(type_, model.UnionType) and not _is_finite(type_, finite)
    ):
        for part in model.children(type_):
            yield from _endless(part, finite)


def _check_default_recursion(
    records: Mapping[model.RecordKey, Record], problems: Problems
) -> None:
    """Refuse a struct whose default for a field builds the struct again."""

    def built(value: object) -> Iterator[model.RecordKey]:
        if isinstance(value, model.StructDefault):
            yield value.type.group, value.type.name
            for _, item in value.fields:
                yield from built(item)
        elif isinstance(value, (list, tuple)):
            for item in value:
                yield from built(item)
        elif isinstance(value, dict):
            for item in value.values():
                yield from built(item)

    edges = {
        key: [
            (f, ref)
            for f in record.fields
            if f.default is not None
            for ref in built(f.default.value)
        ]
        for key, record in records.items()
    }
    for start, starts in edges.items():
        for culprit, first in starts:
            seen: set[model.RecordKey] = set()
            todo = [first]
            while todo:
                key = todo.pop()
                if key not in seen:
                    seen.add(key)
                    todo.extend(ref for _, ref in edges[key])
            if start in seen:
                problems.add(
                    culprit.place,
                    "default-recursion",
                    f"default of field '{culprit.name}' of '{start[1]}' builds a '{start[1]}' "
                    "again without end; make it null, or an empty list",
                )

"""Types that contain themselves: which are fine, which no value can have, and which need a depth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from . import model
from .errors import Problems
from .graph import components, find_cycles
from .model import Record, Type
from .rule import Rule


def check_recursion(groups: Mapping[str, model.Group], problems: Problems) -> None:
    """Report records of which no finite value exists, and defaults that build themselves."""
    records = _records(groups)
    finite: set[model.RecordKey] = set()
    while True:
        found = {
            key
            for key, record in records.items()
            if key not in finite
            and not any(_endless(f.type, finite) for f in record.live_fields)
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
            INFINITE_TYPE,
            f"'{cycle[0][1]}' contains itself without end: {' -> '.join(path)} -> "
            f"{cycle[0][1]}; make one of these fields nullable with '?' or a list",
        )


def _endless(type_: Type, finite: set[model.RecordKey]) -> list[model.RecordKey]:
    """Return the records for which a type has no finite value, given those that have one."""
    if isinstance(type_, (model.StructType, model.MessageType)):
        key = (type_.group, type_.name)
        return [] if key in finite else [key]
    if isinstance(type_, (model.TupleType, model.UnionType)):
        parts = [_endless(part, finite) for part in model.children(type_)]
        if isinstance(type_, model.TupleType) or all(parts):
            return [key for part in parts for key in part]
    return []


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
    circles = components({key: [ref for _, ref in edges[key]] for key in edges})
    circle_of = {key: circle for circle in circles for key in circle}
    for key, builds in edges.items():
        for culprit, ref in builds:
            if ref in circle_of[key]:
                problems.add(
                    culprit.place,
                    DEFAULT_RECURSION,
                    f"default of field '{culprit.name}' of '{key[1]}' builds a '{key[1]}' "
                    "again without end; make it null, or an empty list",
                )


INFINITE_TYPE = Rule(
    "infinite-type",
    "a struct or message contains itself in every value",
    "No value of it is finite, so none can be made, let alone sent.",
    "make one of the fields on the way nullable with `?`, or a list.",
    _report_infinite,
)
DEFAULT_RECURSION = Rule(
    "default-recursion",
    "a default builds the struct that it is a default of",
    "Making one with its defaults would make another, and so on without end.",
    "make the default null, or an empty list.",
    _check_default_recursion,
)

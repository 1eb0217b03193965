"""Emits the tests that one symbol of a message's tensors has the same size everywhere."""

from __future__ import annotations

from collections import defaultdict

from msgen.codegen.schema import model

from .checks import Checker


def shared_symbols(record: model.Record) -> frozenset[str]:
    """Return the dimension symbols that a record uses more than once, or inside a container."""
    count: defaultdict[str, int] = defaultdict(int)
    for field in record.live_fields:
        for part in model.walk(field.type):
            if isinstance(part, model.TensorType):
                direct = part in (field.type, _item(field.type))
                for dim in part.dims or ():
                    if isinstance(dim, str) and dim != "_":
                        count[dim] += 1 if direct else 2
    return frozenset(symbol for symbol, uses in count.items() if uses > 1)


def add_symbol_tests(checker: Checker, record: model.Record, argument: str) -> None:
    """Add the tests on the object ``argument`` to the checker's code."""
    shared = shared_symbols(record)
    if not shared:
        return
    first: dict[str, str] = {}
    tests: list[str] = []
    for field in record.live_fields:
        if not _uses(field, shared):
            continue
        if not isinstance(field.type, model.TensorType):
            # Sizes inside nullables and containers: the table's own walk compares them.
            context = checker.context
            check = context.names.use("msgen.runtime.codec.shapes", "check_symbols")
            checker.code.line(f"{check}({argument}, _RECORDS[{record.name}])")
            return
        for axis, dim in enumerate(field.type.dims or ()):
            if dim in shared:
                size = f"{argument}.{field.name}.shape[{axis}]"
                if str(dim) in first:
                    tests.append(f"{size} != {first[str(dim)]}")
                else:
                    first[str(dim)] = size
    checker.refuse(tests)


def _uses(field: model.Field, symbols: frozenset[str]) -> bool:
    return any(
        isinstance(part, model.TensorType)
        and not symbols.isdisjoint(map(str, part.dims or ()))
        for part in model.walk(field.type)
    )


def _item(type_: model.Type) -> model.Type:
    return type_.item if isinstance(type_, model.NullableType) else type_

"""Names in scope: what each group declares, what it imports, and who imports whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .errors import Place, Problems
from .sections import Section, did_you_mean

SCALARS = (
    "bool",
    "int",
    *(f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64)),
    "float",
    "f32",
    "str",
    "bytes",
    "any",
)
GENERICS = ("list", "tuple", "dict", "tensor")


@dataclass(frozen=True)
class Symbol:
    """A declared type: which group declares it, as what, under which name."""

    kind: str
    group: str
    name: str
    section: Section


@dataclass(frozen=True)
class Scope:
    """The type names that one group may use."""

    group: str
    symbols: Mapping[str, Symbol]
    hidden: Mapping[str, str]
    """Type name to a group that declares it but is not imported, or may not share it."""

    def explain_unknown(self, name: str) -> str:
        """Say what to do about a type name that is not in scope."""
        if name in self.hidden:
            return f"; group '{self.hidden[name]}' declares it: add it to 'imports'"
        return did_you_mean(name, (*self.symbols, *SCALARS, *GENERICS))


def declared_symbols(group: Section) -> list[Symbol]:
    """Return a group's own types, in file order; the batch message included."""
    name = group.text("group")
    symbols = [
        Symbol(kind, name, section.name, section)
        for kind, key in (
            ("enum", "enums"),
            ("struct", "structs"),
            ("message", "messages"),
        )
        for section in group.sections(key)
    ]
    symbols += [
        Symbol("message", name, batch.text("name"), batch)
        for batch in group.sections("batch")
        if "name" in batch
    ]
    return symbols


def build_scopes(groups: Mapping[str, Section], problems: Problems) -> dict[str, Scope]:
    """Build every group's scope, checking imports and clashes of names."""
    declared = {name: declared_symbols(section) for name, section in groups.items()}
    _check_imports(groups, problems)
    return {name: _scope(name, groups, declared, problems) for name in groups}


def _scope(
    group: str,
    groups: Mapping[str, Section],
    declared: Mapping[str, list[Symbol]],
    problems: Problems,
) -> Scope:
    symbols: dict[str, Symbol] = {}
    for symbol in declared[group]:
        _add(symbols, symbol, symbol.section.place, problems)
    imported = [each for each in groups[group].names("imports") if each.text in groups]
    for source in imported:
        for symbol in declared[source.text]:
            if symbol.kind != "message" and source.text != group:
                _add(symbols, symbol, source.place, problems)
    hidden = {
        symbol.name: symbol.group
        for each in declared.values()
        for symbol in each
        if symbol.name not in symbols and symbol.kind != "message"
    }
    return Scope(group, symbols, hidden)


def _add(
    symbols: dict[str, Symbol], symbol: Symbol, place: Place, problems: Problems
) -> None:
    other = symbols.setdefault(symbol.name, symbol)
    if other is symbol:
        return
    where = f"{other.kind} of group '{other.group}' ({other.section.place})"
    problems.add(
        place,
        "duplicate-name",
        f"{symbol.kind} '{symbol.name}' of group '{symbol.group}' has the name of a {where}; "
        "rename one of them",
    )


def _check_imports(groups: Mapping[str, Section], problems: Problems) -> None:
    for name, section in groups.items():
        for item in section.names("imports"):
            if item.text == name:
                problems.add(
                    item.place,
                    "import-cycle",
                    f"group '{name}' imports itself; remove the import",
                )
            elif item.text not in groups:
                hint = (
                    did_you_mean(item.text, groups)
                    or f"; no file {item.text}.yaml is there"
                )
                problems.add(
                    item.place, "unknown-import", f"unknown group '{item.text}'{hint}"
                )
    for cycle in _cycles({name: _imports(section) for name, section in groups.items()}):
        place = next(
            each.place
            for each in groups[cycle[0]].names("imports")
            if each.text == cycle[1]
        )
        problems.add(
            place,
            "import-cycle",
            f"groups import each other in a circle: {' -> '.join(cycle)}; "
            "move the shared types to a group of their own",
        )


def _imports(section: Section) -> list[str]:
    return [
        each.text
        for each in section.names("imports")
        if each.text != section.text("group")
    ]


def _cycles(edges: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Find one cycle through each group that starts it, as a path that ends where it began."""
    done: set[str] = set()
    cycles: list[list[str]] = []
    for start in sorted(edges):
        stack: list[tuple[str, list[str]]] = [(start, list(edges[start]))]
        path = [start]
        while stack:
            node, rest = stack[-1]
            if not rest or node in done:
                done.add(node)
                stack.pop()
                path.pop()
                continue
            target = rest.pop(0)
            if target in path:
                cycles.append([*path[path.index(target) :], target])
            elif target in edges and target not in done:
                stack.append((target, list(edges[target])))
                path.append(target)
    return cycles

"""Names in scope: what each group declares, what it imports, and who imports whom."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import chain

from msgen.codegen.schema import model, names
from msgen.codegen.schema.errors import Place, Problems
from msgen.codegen.schema.graph import find_cycles
from msgen.codegen.schema.rule import Rule
from msgen.codegen.schema.sections import DUPLICATE_NAME, Section
from msgen.codegen.schema.texts import did_you_mean, shown, with_article

SCALARS: dict[str, model.Type] = {
    "bool": model.BoolType(),
    "int": model.IntType("i64"),
    **{width: model.IntType(width) for width in model.INT_RANGES},
    "float": model.FloatType(64),
    "f32": model.FloatType(32),
    "str": model.StrType(),
    "bytes": model.BytesType(),
    "any": model.AnyType(),
}
GENERICS = ("list", "tuple", "dict", "tensor")

_TYPE_KEYS = ("enums", "structs", "messages")
"""The keys of a group under which types are declared, the batch aside."""

_NULL_HINT = "; write 'T?' for a T or null"
_ELSEWHERE = {
    **{f"int{bits}": f"; write 'i{bits}'" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"; write 'u{bits}'" for bits in (8, 16, 32, 64)},
    "long": "; write 'int'",
    "float32": "; write 'f32'",
    "float64": "; write 'float'",
    "double": "; write 'float'",
    **dict.fromkeys(("None", "null", "nil", "Optional"), _NULL_HINT),
    "Union": "; write 'A | B'",
    "object": "; write 'any'",
    "_": ", which is a size; sizes stand in tensor[...] only",
}
"""What other languages call a type, to what this one says."""


@dataclass(frozen=True)
class Symbol:
    """A declared type: which group declares it, as what, under which name."""

    kind: str
    group: str
    name: str
    place: Place
    section: Section


@dataclass(frozen=True)
class Scope:
    """The type names that one group may use."""

    group: str
    symbols: Mapping[str, Symbol]
    everywhere: Mapping[str, Symbol]
    """The types of all groups, whether they can be imported or not."""
    incomplete: bool
    """Whether an import, or a part of the file, could not be read and may declare more."""

    def may_hold(self, name: str) -> bool:
        """Say whether an unknown type may be declared where nothing could be read."""
        return self.incomplete and name[:1].isupper()

    def explain_unknown(self, name: str) -> str:
        """Say what to do about a type name that is not in scope."""
        other = self.everywhere.get(name)
        if other is not None and other.kind == "message":
            return (
                f"; it is a message of group '{other.group}', and messages are not shared: "
                "use a struct"
            )
        if other is not None:
            return (
                f"; group '{other.group}' declares it: add '{other.group}' to 'imports'"
            )
        if name in _ELSEWHERE:
            return _ELSEWHERE[name]
        return did_you_mean(name, (*self.symbols, *SCALARS, *GENERICS)) or (
            "; declare it as a struct or enum, or use bool, int, float, str, bytes, any, list, "
            "tuple, dict or tensor"
        )


def build_scopes(
    groups: Mapping[str, Section], unread: Collection[str], problems: Problems
) -> dict[str, Scope]:
    """Build every group's scope, checking imports and clashes of names.

    Args:
        unread: groups whose files are there but could not be read.
    """
    declared = {
        name: _declared_symbols(name, section) for name, section in groups.items()
    }
    _check_imports(groups, unread, problems)
    everywhere: dict[str, Symbol] = {}
    for symbol in chain.from_iterable(declared.values()):
        # Of two types of one name, the one that can be imported is the better hint.
        if symbol.kind != "message" or symbol.name not in everywhere:
            everywhere[symbol.name] = symbol
    scopes = {
        name: _scope(name, groups, declared, everywhere, problems) for name in groups
    }
    for name, scope in scopes.items():
        _check_collisions(scope, groups[name], problems)
    return scopes


def _declared_symbols(name: str, group: Section) -> list[Symbol]:
    """Return a group's own types, in file order; the batch message included."""
    symbols = [
        Symbol(section.kind, name, section.name, section.place, section)
        for key in _TYPE_KEYS
        for section in group.sections(key)
    ]
    symbols += [
        Symbol("message", name, batch.text("name"), batch.place_of("name"), batch)
        for batch in group.sections("batch")
        if "name" in batch
    ]
    return sorted(symbols, key=lambda symbol: symbol.place)


def _scope(
    group: str,
    groups: Mapping[str, Section],
    declared: Mapping[str, list[Symbol]],
    everywhere: Mapping[str, Symbol],
    problems: Problems,
) -> Scope:
    section = groups[group]
    symbols: dict[str, Symbol] = {}
    for symbol in declared[group]:
        _add(symbols, symbol, symbol.place, problems)
    incomplete = section.incomplete("imports") or _may_declare_more(section)
    for source in section.names("imports"):
        if source.text not in groups:
            incomplete = True
        elif source.text != group:
            incomplete |= _may_declare_more(groups[source.text])
            for symbol in declared[source.text]:
                if symbol.kind != "message":
                    names.check_imported_name(
                        symbol.name, symbol.kind, group, source.place, problems
                    )
                    _add(symbols, symbol, source.place, problems)
    return Scope(group, symbols, everywhere, incomplete)


def _may_declare_more(group: Section) -> bool:
    return any(group.incomplete(key) for key in _TYPE_KEYS)


def _add(
    symbols: dict[str, Symbol], symbol: Symbol, place: Place, problems: Problems
) -> None:
    other = symbols.setdefault(symbol.name, symbol)
    if other is symbol:
        return
    here = there = ""
    if other.group != symbol.group:
        here, there = f" of group '{symbol.group}'", f" of group '{other.group}'"
    problems.add(
        place,
        DUPLICATE_NAME,
        f"{symbol.kind} {shown(symbol.name)}{here} has the name of "
        f"{with_article(other.kind)}{there} ({other.place}); rename one of them",
    )


def _check_collisions(scope: Scope, group: Section, problems: Problems) -> None:
    """Refuse two type names in scope that give the generated functions one name."""
    taken: dict[str, str] = {}
    imports = {each.text: each.place for each in group.names("imports")}
    for symbol in scope.symbols.values():
        other = taken.setdefault(names.snake_case(symbol.name), symbol.name)
        if other != symbol.name:
            problems.add(
                imports.get(symbol.group, symbol.place),
                NAME_COLLISION,
                f"types '{other}' and '{symbol.name}' are both "
                f"'{names.snake_case(symbol.name)}' in snake_case, which names the generated "
                "functions; rename one of them",
            )


NAME_COLLISION = Rule(
    "name-collision",
    "two types are the same in snake_case",
    "The generated functions are called after the types in snake_case, so that `UserMSG` and "
    "`UserMsg` would share theirs.",
    "rename one of the types.",
    _check_collisions,
)


def _check_imports(
    groups: Mapping[str, Section], unread: Collection[str], problems: Problems
) -> None:
    for name, section in groups.items():
        for item in section.names("imports"):
            if item.text == name:
                problems.add(
                    item.place,
                    IMPORT_CYCLE,
                    f"group '{name}' imports itself; remove the import",
                )
            elif item.text not in groups and item.text not in unread:
                hint = did_you_mean(item.text, groups)
                hint = hint or f"; no file {item.text}.yaml is there"
                problems.add(
                    item.place, UNKNOWN_IMPORT, f"unknown group {item.shown}{hint}"
                )
    edges = {
        name: [each.text for each in section.names("imports") if each.text != name]
        for name, section in groups.items()
    }
    for cycle in find_cycles(edges):
        place = next(
            each.place
            for each in groups[cycle[0]].names("imports")
            if each.text == cycle[1]
        )
        problems.add(
            place,
            IMPORT_CYCLE,
            f"groups import each other in a circle: {' -> '.join(cycle)}; "
            "move the shared types to a group of their own",
        )


UNKNOWN_IMPORT = Rule(
    "unknown-import",
    "a group imports another that is not there",
    "Its types would be unknown wherever they are used.",
    "correct the spelling, add the file of the group, or remove the import.",
    _check_imports,
)
IMPORT_CYCLE = Rule(
    "import-cycle",
    "groups import each other in a circle",
    "Generated modules import each other as their groups do, and Python modules that import each "
    "other in a circle do not load.",
    "move the shared types to a group of their own, which both import.",
    _check_imports,
)

"""The names of one generated module: what it imports is recorded while its body is written.

The body is written first and asks for every name it uses, so that the imports, written last,
are neither short nor long of one. A name that the schema took for itself (a struct called
`Tensor`, a field called `list`) is imported with an underscore behind it, which neither a name of a
schema nor one of an emitted function has.
"""

from __future__ import annotations

import re
from collections import defaultdict

RUNTIME = "msgen.runtime.codec"

_SOURCES = {
    "Any": "typing",
    "Final": "typing",
    "IntEnum": "enum",
    "TypeAlias": "typing",
    "cast": "typing",
    "dataclass": "dataclasses",
    "field": "dataclasses",
    "inf": "math",
    "isfinite": "math",
    "torch": "",
}
"""Where names come from that are not the runtime's; a module comes from nowhere."""


class Names:
    """Records imports: `names["Unfit"]` is what `Unfit` is called in the module."""

    def __init__(self, taken: frozenset[str]) -> None:
        self._taken = taken
        self._imported: defaultdict[str, dict[str, str]] = defaultdict(dict)

    def __getitem__(self, name: str) -> str:
        local = f"{name}_" if name in self._taken else name
        self._imported[_SOURCES.get(name, RUNTIME)][name] = local
        return local

    def builtin(self, name: str) -> str:
        """Spell a builtin type inside a class body, where a field's name would shadow it."""
        if name not in self._taken:
            return name
        self._imported[""]["builtins"] = "_builtins"
        return f"_builtins.{name}"

    def sibling(self, group: str, name: str, local: str | None = None) -> str:
        """Import a name from another generated module of the package."""
        self._imported[f".{group}"][name] = local or name
        return local or name

    def imports(self) -> list[list[str]]:
        """Return the import statements as isort sorts them, in its sections."""
        standard: list[str] = []
        runtime: list[str] = []
        siblings: list[str] = []
        for name, local in sorted(self._imported[""].items()):
            renamed = "" if local == name else f" as {local}"
            (runtime if name == "torch" else standard).append(f"import {name}{renamed}")
        for path in sorted(filter(None, self._imported)):
            is_runtime = path == RUNTIME
            section = (
                runtime if is_runtime else siblings if path[0] == "." else standard
            )
            section += _from(path, self._imported[path])
        return [section for section in (standard, runtime, siblings) if section]


def _from(path: str, members: dict[str, str]) -> list[str]:
    """Return the statements of one module: one for all names but the renamed."""
    plain = [name for name in sorted(members, key=sort_key) if members[name] == name]
    statements = [(plain[0], ", ".join(plain))] if plain else []
    for name, local in members.items():
        if local != name:
            statements.append((name, f"{name} as {local}"))
    return [
        f"from {path} import {names}"
        for _, names in sorted(statements, key=lambda each: sort_key(each[0]))
    ]


def sort_key(name: str, text: str = "") -> tuple[int, list[tuple[int, str]], str]:
    """isort's order of names: CONSTANTS, Classes, functions; numbers in them by value.

    ``text`` is what is compared: in lower case for imports, the name itself for `__all__`.
    """
    is_constant = name.isupper() and len(name) > 1
    is_class = name[:1].isupper()
    parts = re.findall(r"([0-9]+)|([^0-9]+)", text or name.lower())
    natural = [(int(digits or -1), part) for digits, part in parts]
    return 0 if is_constant else 1 if is_class else 2, natural, name

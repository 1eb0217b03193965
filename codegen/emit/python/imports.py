"""The names of one generated module: what it imports is recorded while its body is written.

The body is rendered first and asks for every name it uses, so that the imports, rendered last,
are neither short nor long of one. A name that the schema took for itself (a struct called
`Tensor`, a field called `list`) is imported with an underscore behind it, which neither a name of a
schema nor one of an emitted function has.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from .layout import Code, bracket

STANDARD_LIBRARY = frozenset(
    {"builtins", "collections.abc", "dataclasses", "enum", "math", "typing"}
)


@dataclass
class ModuleNames:
    """Records imports.

    Attributes:
        taken: names that fields, types and enum members of the module have.
    """

    taken: frozenset[str]
    _modules: dict[str, str] = field(default_factory=dict)
    _members: defaultdict[str, dict[str, str]] = field(
        default_factory=lambda: defaultdict(dict)
    )

    def builtin(self, name: str) -> str:
        """Spell a builtin type inside a class body, where a field's name would shadow it."""
        return (
            f"{self.module('builtins', '_builtins')}.{name}"
            if name in self.taken
            else name
        )

    def module(self, path: str, alias: str | None = None) -> str:
        """Import a module and return the name it has here."""
        name = alias or (f"{path}_" if path in self.taken else path)
        self._modules[path] = name
        return name

    def use(self, module: str, name: str) -> str:
        """Import a name from a module and return the name it has here."""
        local = f"{name}_" if name in self.taken else name
        self._members[module][name] = local
        return local

    def sibling(self, group: str, name: str, local: str | None = None) -> str:
        """Import a name from another generated module of the package."""
        self._members[f".{group}"][name] = local or name
        return local or name

    def render(self) -> str:
        """Write the import block, sorted as isort does."""
        code = Code()
        code.line("from __future__ import annotations")
        paths = {*self._modules, *self._members}
        standard = {path for path in paths if path in STANDARD_LIBRARY}
        siblings = {path for path in paths if path.startswith(".")}
        for section in (standard, paths - standard - siblings, siblings):
            if section:
                code.blank()
                self._section(code, section)
        return "\n".join(code.lines)

    def _section(self, code: Code, paths: Iterable[str]) -> None:
        ordered = sorted(paths)
        for path in ordered:
            if path in self._modules:
                name = self._modules[path]
                code.line(f"import {path}" + (f" as {name}" if name != path else ""))
        for path in ordered:
            members = self._members.get(path, {})
            plain = sorted(
                (name for name in members if members[name] == name), key=_isort_key
            )
            lines = [[name] for name in members if members[name] != name]
            lines += [plain] if plain else []
            for names in sorted(lines, key=lambda names: _isort_key(names[0])):
                local = members[names[0]]
                if local == names[0]:
                    self._import(code, path, names)
                else:
                    code.line(f"from {path} import {names[0]} as {local}")

    def _import(self, code: Code, path: str, names: list[str]) -> None:
        flat = f"from {path} import {', '.join(names)}"
        if len(flat) <= 88:
            code.line(flat)
        else:
            code.statement("", bracket(f"from {path} import (", names, ")"))


def _isort_key(name: str) -> tuple[int, list[tuple[int, str]], str]:
    """isort's order of names: CONSTANTS, Classes, functions; numbers in them by value."""
    is_constant = name.isupper() and len(name) > 1
    is_class = name[:1].isupper()
    parts = re.findall(r"([0-9]+)|([^0-9]+)", name.lower())
    natural = [(int(digits or -1), text) for digits, text in parts]
    return 0 if is_constant else 1 if is_class else 2, natural, name

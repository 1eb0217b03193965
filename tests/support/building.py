"""Builds schemas into importable packages for tests."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import sys
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgen.codegen import generate, load_schema
from msgen.codegen.emit.output import apply, find_changes
from msgen.codegen.history.layouts import load_layouts
from msgen.codegen.schema.model import Schema

_numbers = itertools.count()


@dataclass(frozen=True)
class Built:
    """A schema and its imported modules."""

    schema: Schema
    folder: Path
    package: str

    def module(self, group: str) -> Any:
        """Return a group's module; its names are the schema's, so it is Any."""
        return importlib.import_module(f"{self.package}.{group}")


def write_schema(folder: Path, files: Mapping[str, str]) -> Path:
    """Write schema files and return their folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@contextmanager
def built(folder: Path, schema_dir: Path) -> Iterator[Built]:
    """Generate a schema into ``folder`` and import it under a name of its own."""
    schema = load_schema(schema_dir)
    package = f"_generated_{next(_numbers)}"
    out = folder / package
    apply(find_changes(generate(schema, load_layouts(schema_dir)), out), out)
    spec = importlib.util.spec_from_file_location(
        package, out / "__init__.py", submodule_search_locations=[str(out)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[package] = module
    spec.loader.exec_module(module)
    try:
        yield Built(schema, out, package)
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == package]:
            del sys.modules[name]


@contextmanager
def built_in_memory(schema: Schema) -> Iterator[Built]:
    """Generate and import a schema without a file, which is faster where there are many."""
    package = f"_generated_{next(_numbers)}"
    texts = generate(schema)
    root = types.ModuleType(package)
    root.__path__ = []
    sys.modules[package] = root
    waiting = list(schema.groups.values())
    try:
        while waiting:  # those first that import what is there
            group = next(
                each
                for each in waiting
                if not {name for name, _ in each.imports} & {w.name for w in waiting}
            )
            waiting.remove(group)
            name = f"{package}.{group.name}"
            module = sys.modules[name] = types.ModuleType(name)
            module.__package__ = package
            exec(compile(texts[f"{group.name}.py"], f"{name}.py", "exec"), vars(module))
        yield Built(schema, Path(package), package)
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == package]:
            del sys.modules[name]

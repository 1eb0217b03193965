"""The generator: schema files to a checked model to the text of Python modules.

The names below are loaded on first use, so that `msgen --help` does not wait for the pipeline.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .emit import generate
    from .schema import Place, Problem, SchemaError, load_schema

__all__ = ["Place", "Problem", "SchemaError", "generate", "load_schema"]

_MODULES = {"generate": ".emit"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(_MODULES.get(name, ".schema"), __name__)
    value = getattr(module, name)
    globals()[name] = value
    return value

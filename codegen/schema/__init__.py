"""Schema files to a checked, frozen model, or to every problem that is in them.

A file goes through sub-packages in this order, which is also the order of imports:

    yaml/      text -> nodes, which know their place
    sections/  nodes -> sections, by the table of the language's keys
    types/     texts of types and defaults -> types and values of the model
    declare/   sections of all groups -> their models
    model/     what comes out

`loader` runs them. Beside them stand `errors` and `rule` (problems and their rows), `names`,
`texts`, `graph`, and what looks at a finished model: `recursion`, `lint`, `fingerprint`. `rules`
lists the rows of all findings. Nothing else of the generator is imported here.
"""

from .errors import Place, Problem, Problems, SchemaError
from .fingerprint import Fingerprints
from .lint import lint_schema
from .loader import load_files, load_schema
from .model import Schema
from .rule import Rule
from .sections import json_schema

__all__ = [
    "Fingerprints",
    "Place",
    "Problem",
    "Problems",
    "Rule",
    "Schema",
    "SchemaError",
    "json_schema",
    "lint_schema",
    "load_files",
    "load_schema",
]

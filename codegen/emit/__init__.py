"""Model to `{path: text}`; nothing here touches files but `output`.

Comes in: a checked schema, and the layouts that were released before. Goes out: the text of every
file of the output folder, the same whatever the machine, the folder and the hash seed.

Each language is a folder of views, filters and templates (`python/`). `facts.py` is what they ask
about a schema in common; `output.py` compares the text with a folder, and writes it.

May import: `history` and `schema`.
"""

from __future__ import annotations

from msgen.codegen.history.layouts import Layouts
from msgen.codegen.schema.model import Schema

from .facts import Facts
from .python import generate_python

__all__ = ["generate"]


def generate(schema: Schema, layouts: Layouts | None = None) -> dict[str, str]:
    """Generate all modules of a schema.

    Args:
        layouts: those that were released before; modules say how they differ from today's.

    Returns:
        File name, relative to the output folder, to text.
    """
    return generate_python(Facts.of(schema, layouts or Layouts()))

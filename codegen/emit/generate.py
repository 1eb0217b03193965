"""The end of the pipeline: a schema to the text of every file of the output folder."""

from __future__ import annotations

from msgen.codegen.history.layouts import Layouts
from msgen.codegen.schema.model import Schema

from .facts import Facts
from .python import generate_python


def generate(schema: Schema, layouts: Layouts | None = None) -> dict[str, str]:
    """Generate all modules of a schema.

    Args:
        layouts: those that were released before; modules say how they differ from today's.

    Returns:
        File name, relative to the output folder, to text.
    """
    return generate_python(Facts.of(schema, layouts or Layouts()))

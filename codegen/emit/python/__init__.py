"""Model to the text of Python modules.

Comes in: a checked schema with its facts. Goes out: `{file name: text}`.

    module.py      one module being written: how it spells its names; imports.py records them
    types.py       annotations, default values, entries of the description table
    classes.py     what stands in dataclasses, the description table, `CODEC`
    functions.py   views of encoders and decoders; values.py their expressions, checks.py their tests
    render.py      views into templates/, one macro for each thing that is emitted
    layout.py      filters: what wraps long lines, docstrings

May import: `emit.facts`, `history` and `schema`.
"""

from .render import generate_python

__all__ = ["generate_python"]

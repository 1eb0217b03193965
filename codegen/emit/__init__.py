"""Model to `{path: text}`; nothing here touches files but `output`.

Comes in: a checked schema, and the layouts that were released before. Goes out: the text of every
file of the output folder, the same whatever the machine, the folder and the hash seed.

Each language is a folder of views, filters and templates (`python/`). `facts.py` is what they ask
about a schema in common; `output.py` compares the text with a folder, and writes it.

May import: `history` and `schema`.
"""

from .generate import generate

__all__ = ["generate"]

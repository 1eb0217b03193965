"""Text of a schema file to nodes of strict YAML, which know their place.

In comes the text of one file, out comes its root node, or problems. `events` runs PyYAML's parser
and reports syntax errors; `compose` builds nodes from its events and refuses what strict YAML does
not have: anchors, aliases, merges, tags, duplicate keys, keys that are no strings.

It knows nothing of the schema language, and imports `errors`, `rule` and `texts` only.
"""

from .compose import parse_yaml
from .events import place_at
from .nodes import BOOLEANS, Broken, Mapping, Node, Scalar, Sequence

__all__ = [
    "BOOLEANS",
    "Broken",
    "Mapping",
    "Node",
    "Scalar",
    "Sequence",
    "parse_yaml",
    "place_at",
]

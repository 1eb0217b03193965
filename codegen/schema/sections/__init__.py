"""Nodes of a file to sections: every key known, every value of the shape that its key asks for.

`language` is the table of the schema language's keys, from which the JSON Schema comes too;
`reader` checks nodes against it; `section` is what later stages ask for values and their places.
What the values mean is not checked here.

It imports `yaml`, `errors`, `rule` and `texts` only.
"""

from .language import json_schema
from .reader import DUPLICATE_NAME, YAML_IMPLICIT, read_section
from .section import Section

__all__ = [
    "DUPLICATE_NAME",
    "YAML_IMPLICIT",
    "Section",
    "json_schema",
    "read_section",
]

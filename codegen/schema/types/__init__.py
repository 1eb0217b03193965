"""What fields hold: type expressions to types of the model, and defaults to values of them.

`expression` parses the text of a type, `scope` says which names a group may use, `resolve` builds
the type, asking `unions` whether alternatives can be told apart, and `defaults` reads a default as
a value of a type.

It imports `sections`, `yaml` and the modules beside the sub-packages.
"""

from .defaults import DefaultReader, FieldTypes
from .resolve import build_type
from .scope import Scope, build_scopes

__all__ = [
    "DefaultReader",
    "FieldTypes",
    "Scope",
    "build_scopes",
    "build_type",
]

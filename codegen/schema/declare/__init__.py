"""Sections of all groups to their models: names, numbers, types, defaults and evolution keys.

`groups` builds groups with their messages and structs, `enums` builds enums, `limits` puts a
field's limits into its type, and `evolution` checks `since` and `was`. Objects that are built beside
a reported problem are never used: the loader raises first.

It imports `types`, `sections` and the modules beside the sub-packages.
"""

from .groups import BATCH_FIELD, build_groups

__all__ = ["BATCH_FIELD", "build_groups"]

"""Older versions: git, what to compare with, recorded layouts.

`against` turns what `--against` and `--transitive` name into checked schemas, out of `git` or from
a folder. `versions` tells from the schema of today how it was at an older version. `layouts` keeps
what releases looked like, so that modules can say how a peer of one differs. May import `schema`.
"""

from .against import MERGE_BASE, AgainstError, Previous, older_versions
from .layouts import LAYOUTS_FILE, LAYOUTS_WRONG, Layouts, load_layouts
from .versions import at_version, parse_versions

__all__ = [
    "LAYOUTS_FILE",
    "LAYOUTS_WRONG",
    "MERGE_BASE",
    "AgainstError",
    "Layouts",
    "Previous",
    "at_version",
    "load_layouts",
    "older_versions",
    "parse_versions",
]

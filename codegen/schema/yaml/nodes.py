"""Nodes of strict YAML, which know their place.

Plain scalars keep the fact that they were plain, so that a reader can refuse `no` where a name is
wanted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

import yaml
from msgen.codegen.schema.errors import Place
from msgen.codegen.schema.texts import shown

BOOLEANS = {"true": True, "false": False}

_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)\Z")
_IMPLICIT_NAMES = {
    "bool": "a boolean",
    "float": "a number",
    "int": "a number",
    "merge": "a merge key",
    "null": "null",
    "timestamp": "a date",
    "value": "a special value",
}


@dataclass(frozen=True)
class Scalar:
    """A string as written; ``plain`` when it stood without quotes."""

    place: Place
    text: str
    plain: bool
    lead: int | None = None
    """Columns from the place to the text, None where the file spells the text otherwise."""

    @property
    def shown(self) -> str:
        if self.plain:
            return shown(self.text) if self.text else "empty"
        return shown(self.text, quote='"')

    @property
    def plain_text(self) -> str:
        """The text of what stood without quotes, empty otherwise."""
        return self.text if self.plain else ""

    @property
    def is_integer(self) -> bool:
        """Whether it is a decimal integer without quotes or leading zeros."""
        return bool(_INTEGER.match(self.plain_text))

    @property
    def is_null(self) -> bool:
        """Whether it is one of YAML's words for null, an empty value aside."""
        return bool(self.text) and self.implicit() == "null"

    def integer(self, least: int, most: int) -> int | None:
        """Return an integer's value, or None when it is out of range."""
        # The widest integer has 20 characters, and Python refuses numbers of some thousand digits.
        if len(self.text) > 20:
            return None
        number = int(self.text)
        return number if least <= number <= most else None

    def implicit(self) -> str | None:
        """Say what plain YAML 1.1 would read this scalar as, None for a string."""
        if not self.plain:
            return None
        resolvers = yaml.SafeLoader.yaml_implicit_resolvers
        for tag, pattern in resolvers.get(self.text[:1], ()):
            if pattern.match(self.text):
                return _IMPLICIT_NAMES[tag.rpartition(":")[2]]
        return None

    def inner_place(self, offset: int) -> Place:
        """Return the place of the character at ``offset`` of the text, as far as it is known."""
        return (
            self.place if self.lead is None else self.place.shifted(self.lead + offset)
        )


@dataclass(frozen=True)
class Mapping:
    """Entries in file order, keys unique."""

    place: Place
    entries: tuple[tuple[Scalar, Node], ...]
    complete: bool = True
    """False when an entry was refused and left out."""

    shown = "a mapping"
    plain_text = ""
    is_null = False


@dataclass(frozen=True)
class Sequence:
    place: Place
    items: tuple[Node, ...]

    shown = "a list"
    plain_text = ""
    is_null = False


@dataclass(frozen=True)
class Broken:
    """A node about which a problem was reported already."""

    place: Place

    shown = "unreadable"
    plain_text = ""
    is_null = False


Node: TypeAlias = Scalar | Mapping | Sequence | Broken

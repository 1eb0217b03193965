"""A section: a mapping of the schema language, its keys known and its values in shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from msgen.codegen.schema.errors import KeyPlaces, Place
from msgen.codegen.schema.yaml import nodes
from msgen.codegen.schema.yaml.nodes import Node, Scalar

EntryValue: TypeAlias = "str | int | Node | tuple[Scalar, ...] | tuple[Section, ...]"


class Entry(NamedTuple):
    """A key that stands in the file.

    ``value`` is None where it could not be read; ``complete`` is False where a part could not.
    """

    place: Place
    key_place: Place
    value: EntryValue | None
    complete: bool


@dataclass(frozen=True)
class Section:
    """A mapping of the schema language, such as one message.

    A key whose value could not be read is not `in` the section. A check that would take it for
    absent, or for its default, asks `incomplete` first.

    Attributes:
        name: the name it is declared under, empty where it has none.
        place: the place of that name.
    """

    kind: str
    name: str
    place: Place
    _entries: Mapping[str, Entry] = field(default_factory=dict)
    _whole: bool = True

    def __contains__(self, key: str) -> bool:
        return self._value(key) is not None

    def _value(self, key: str) -> EntryValue | None:
        entry = self._entries.get(key)
        return None if entry is None else entry.value

    def incomplete(self, key: str) -> bool:
        """Say whether the author wrote, or may have written, more here than could be read."""
        entry = self._entries.get(key)
        return not self._whole if entry is None else not entry.complete

    def place_of(self, key: str) -> Place:
        """Return the place of a key's value, or of the section where the key is absent."""
        return self._entries[key].place if key in self._entries else self.place

    def key_place(self, key: str) -> Place:
        return self._entries[key].key_place

    def places(self) -> KeyPlaces:
        """Return the place of every key's value."""
        return tuple((key, entry.place) for key, entry in self._entries.items())

    def text(self, key: str) -> str:
        value = self._value(key) or ""
        assert isinstance(value, str)
        return value

    def optional_text(self, key: str) -> str | None:
        return self.text(key) if key in self else None

    def count(self, key: str) -> int:
        """Return an integer; 1, the first version, where the key is absent."""
        value = self._value(key)
        assert value is None or isinstance(value, int)
        return 1 if value is None else value

    def flag(self, key: str) -> bool:
        return self._value(key) is True

    def scalar(self, key: str) -> Scalar:
        value = self._value(key)
        assert isinstance(value, Scalar)
        return value

    def node(self, key: str) -> Node:
        value = self._value(key)
        assert isinstance(value, (Scalar, nodes.Mapping, nodes.Sequence, nodes.Broken))
        return value

    def names(self, key: str) -> tuple[Scalar, ...]:
        value = self._value(key) or ()
        assert isinstance(value, tuple)
        return tuple(each for each in value if isinstance(each, Scalar))

    def sections(self, key: str) -> tuple[Section, ...]:
        value = self._value(key) or ()
        assert isinstance(value, tuple)
        return tuple(each for each in value if isinstance(each, Section))

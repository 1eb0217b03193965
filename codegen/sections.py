"""Nodes to sections: the shape of a schema file, checked against the key table.

After this stage every key is known and every value has the shape its key asks for; what the
values mean is checked later.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from .errors import Place, Problems
from .language import SECTIONS, Key
from .nodes import Mapping, Node, Scalar, Sequence

_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)\Z")


@dataclass(frozen=True)
class Section:
    """A mapping of the schema language, such as one message.

    Attributes:
        name: the name it is declared under, empty where it has none.
        place: the place of that name.
    """

    kind: str
    name: str
    place: Place
    _values: dict[str, Entry] = field(default_factory=dict)

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def place_of(self, key: str) -> Place:
        """Return the place of a key's value, or of the section where the key is absent."""
        return self._values[key].place if key in self._values else self.place

    def key_place(self, key: str) -> Place:
        return self._values[key].key_place

    def text(self, key: str) -> str:
        value = self._values[key].value if key in self._values else ""
        assert isinstance(value, str)
        return value

    def optional_text(self, key: str) -> str | None:
        return self.text(key) if key in self._values else None

    def count(self, key: str, default: int = 1) -> int:
        value = self._values[key].value if key in self._values else default
        assert isinstance(value, int)
        return value

    def flag(self, key: str) -> bool:
        return key in self._values and self._values[key].value is True

    def scalar(self, key: str) -> Scalar:
        value = self._values[key].value
        assert isinstance(value, Scalar)
        return value

    def node(self, key: str) -> Node:
        value = self._values[key].value
        assert isinstance(value, (Scalar, Mapping, Sequence))
        return value

    def names(self, key: str) -> tuple[Scalar, ...]:
        value = self._values[key].value if key in self._values else ()
        assert isinstance(value, tuple)
        return tuple(each for each in value if isinstance(each, Scalar))

    def sections(self, key: str) -> tuple[Section, ...]:
        value = self._values[key].value if key in self._values else ()
        assert isinstance(value, tuple)
        return tuple(each for each in value if isinstance(each, Section))


EntryValue: TypeAlias = "str | int | Node | tuple[Scalar, ...] | tuple[Section, ...]"


@dataclass(frozen=True)
class Entry:
    place: Place
    key_place: Place
    value: EntryValue


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the nearest known name, or the empty string."""
    close = difflib.get_close_matches(name, sorted(known), n=1)
    return f"; did you mean '{close[0]}'?" if close else ""


def read_section(
    kind: str, name: str, place: Place, node: Node, problems: Problems
) -> Section:
    """Read a mapping node as a section of ``kind``; problems leave the key out."""
    keys = SECTIONS[kind]
    what = _describe(kind, name)
    if not isinstance(node, Mapping):
        expected = ", ".join(keys)
        problems.add(
            node.place,
            "wrong-shape",
            f"{what} is {_shown(node)}; expected a mapping of {expected}",
        )
        return Section(kind, name, place)
    values: dict[str, Entry] = {}
    for key, value in node.entries:
        spec = keys.get(key.text)
        if spec is None:
            hint = did_you_mean(key.text, keys) or f"; the keys are {', '.join(keys)}"
            problems.add(
                key.place, "unknown-key", f"{what} has no key '{key.text}'{hint}"
            )
            continue
        read = _read_value(f"'{key.text}' of {what}", spec, value, problems)
        if read is not None:
            values[key.text] = Entry(value.place, key.place, read)
    present = {key.text for key, _ in node.entries}
    for wanted, spec in keys.items():
        if spec.required and wanted not in present:
            problems.add(
                place, "missing-key", f"{what} needs the key '{wanted}': {spec.doc}"
            )
    return Section(kind, name, place, values)


def _describe(kind: str, name: str) -> str:
    return f"{kind} '{name}'" if name else f"the {kind}"


def _shown(node: Node) -> str:
    if isinstance(node, Mapping):
        return "a mapping"
    if isinstance(node, Sequence):
        return "a list"
    return f"'{node.text}'" if node.text else "empty"


def _read_value(
    what: str, spec: Key, node: Node, problems: Problems
) -> EntryValue | None:
    kind, _, section = spec.shape.partition(" ")
    if kind == "value":
        return node
    if kind == "names":
        return _read_names(what, node, problems)
    if kind in SECTIONS:
        return (read_section(kind, "", node.place, node, problems),)
    if section:
        return _read_map(what, section, kind == "short", node, problems)
    if not isinstance(node, Scalar):
        expected = {"count": "an integer", "flag": "true or false"}.get(
            kind, "a string"
        )
        problems.add(
            node.place, "wrong-shape", f"{what} is {_shown(node)}; expected {expected}"
        )
        return None
    if kind == "flag":
        return _read_flag(what, node, problems)
    if kind == "count":
        return _read_count(what, spec, node, problems)
    if not _is_text(what, node, problems):
        return None
    return node if kind == "type" else node.text


def _is_text(what: str, node: Scalar, problems: Problems) -> bool:
    implicit = node.implicit()
    if implicit is not None:
        shown = f"'{node.text}'" if node.text else "empty"
        problems.add(
            node.place,
            "yaml-implicit",
            f"{what} is {shown}, which is {implicit} to YAML; expected a string: quote it",
        )
        return False
    if not node.text:
        problems.add(
            node.place, "wrong-shape", f"{what} is empty; write it or remove the key"
        )
        return False
    return True


def _read_flag(what: str, node: Scalar, problems: Problems) -> int | None:
    if node.plain and node.text in ("true", "false"):
        return node.text == "true"
    problems.add(
        node.place, "wrong-shape", f"{what} is {_shown(node)}; expected true or false"
    )
    return None


def _read_count(what: str, spec: Key, node: Scalar, problems: Problems) -> int | None:
    if not node.plain or not _INTEGER.match(node.text):
        problems.add(
            node.place,
            "wrong-shape",
            f"{what} is {_shown(node)}; expected a decimal integer without quotes or leading zeros",
        )
        return None
    if len(node.text) > 20 or not spec.least <= int(node.text) <= spec.most:
        problems.add(
            node.place,
            "out-of-range",
            f"{what} is {node.text}; expected {spec.least} to {spec.most}",
        )
        return None
    return int(node.text)


def _read_names(what: str, node: Node, problems: Problems) -> tuple[Scalar, ...] | None:
    if not isinstance(node, Sequence):
        problems.add(
            node.place,
            "wrong-shape",
            f"{what} is {_shown(node)}; expected a list of names",
        )
        return None
    names: dict[str, Scalar] = {}
    for item in node.items:
        if not isinstance(item, Scalar):
            problems.add(
                item.place,
                "wrong-shape",
                f"{what} holds {_shown(item)}; expected a name",
            )
        elif _is_text(f"an item of {what}", item, problems):
            if item.text in names:
                problems.add(
                    item.place,
                    "duplicate-name",
                    f"{what} lists '{item.text}' twice; remove one",
                )
            names[item.text] = item
    return tuple(names.values())


def _read_map(
    what: str, kind: str, short: bool, node: Node, problems: Problems
) -> tuple[Section, ...] | None:
    if not isinstance(node, Mapping):
        problems.add(
            node.place,
            "wrong-shape",
            f"{what} is {_shown(node)}; expected a mapping of {kind} names",
        )
        return None
    sections = []
    for key, value in node.entries:
        if short and isinstance(value, Scalar):
            first = next(iter(SECTIONS[kind]))
            value = Mapping(
                value.place, ((Scalar(value.place, first, plain=True), value),)
            )
        elif kind in ("struct",) and isinstance(value, Scalar) and not value.text:
            value = Mapping(value.place, ())
        sections.append(read_section(kind, key.text, key.place, value, problems))
    return tuple(sections)

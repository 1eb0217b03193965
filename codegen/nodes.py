"""Strict YAML: text to nodes that know their place.

The schema files use a subset of YAML in which every value means what it looks like. PyYAML's
event stream is turned into three node classes; anchors, aliases, merges, tags, duplicate keys
and non-string keys are problems here, and plain scalars keep the fact that they were plain, so
that a reader can refuse `no` where a name is wanted.

The events come from libyaml when PyYAML was built with it. A syntax error is always explained by
the pure Python parser, so that the text of an error does not depend on the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import yaml

from .errors import Place, Problems

MAX_DEPTH = 32
"""Levels of nested YAML collections that a schema file may have."""

_FAST_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
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
    block: bool = False

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
        if self.block or "\n" in self.text:
            return self.place
        return self.place.shifted(offset if self.plain else offset + 1)


@dataclass(frozen=True)
class Mapping:
    """Entries in file order, keys unique."""

    place: Place
    entries: tuple[tuple[Scalar, Node], ...]


@dataclass(frozen=True)
class Sequence:
    place: Place
    items: tuple[Node, ...]


Node: TypeAlias = Scalar | Mapping | Sequence


def parse_yaml(text: str, path: str, problems: Problems) -> Node | None:
    """Parse one schema file.

    Returns:
        The root node, or None when the text is not YAML or is empty; ``problems`` says why.
    """
    events = _events(text, path, problems)
    if events is None:
        return None
    return _Composer(events, path, problems).document()


def _events(text: str, path: str, problems: Problems) -> list[Any] | None:
    try:
        return list(yaml.parse(text, Loader=_FAST_LOADER))
    except yaml.YAMLError:
        pass
    try:
        return list(yaml.parse(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(path, mark.line + 1, mark.column + 1) if mark else Place(path)
        problems.add(place, "yaml-syntax", f"not valid YAML: {error.problem}")
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        place = Place(path, before.count("\n") + 1, error.position - before.rfind("\n"))
        problems.add(
            place,
            "yaml-syntax",
            f"character U+{ord(text[error.position]):04X} is not allowed in YAML; remove it",
        )
    return None


class _Composer:
    """Builds nodes from events, collecting what strict YAML does not allow."""

    def __init__(self, events: list[Any], path: str, problems: Problems) -> None:
        self._events: Iterator[Any] = iter(events)
        self._path = path
        self._problems = problems

    def document(self) -> Node | None:
        root: Node | None = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents == 2:
                    self._problems.add(
                        self._place(event),
                        "yaml-document",
                        "a second YAML document starts here; a schema file holds one group, "
                        "so move it to a file of its own",
                    )
            elif not isinstance(
                event,
                (yaml.StreamStartEvent, yaml.StreamEndEvent, yaml.DocumentEndEvent),
            ):
                node = self._node(event, 0)
                if documents == 1:
                    root = node
        if root is None or (isinstance(root, Scalar) and root.plain and not root.text):
            self._problems.add(
                Place(self._path),
                "yaml-document",
                "the file is empty; start it with 'group: <name>' or delete it",
            )
            return None
        return root

    def _place(self, event: Any) -> Place:
        return Place(self._path, event.start_mark.line + 1, event.start_mark.column + 1)

    def _node(self, event: Any, depth: int) -> Node:
        place = self._place(event)
        if isinstance(event, yaml.AliasEvent):
            self._problems.add(
                place,
                "yaml-alias",
                f"alias '*{event.anchor}': aliases are not part of the schema language; "
                "repeat the value or declare a struct",
            )
            return Scalar(place, "", plain=False)
        if event.anchor is not None:
            self._problems.add(
                place,
                "yaml-anchor",
                f"anchor '&{event.anchor}': anchors are not part of the schema language; remove it",
            )
        if event.tag is not None:
            self._problems.add(
                place,
                "yaml-tag",
                f"tag '{event.tag}': tags are not part of the schema language; remove it",
            )
        if isinstance(event, yaml.ScalarEvent):
            # A tag switches plain resolution off; it is refused above, so read on as a string.
            plain = event.style in (None, "") and event.tag is None
            if any("\ud800" <= char <= "\udfff" for char in event.value):
                self._problems.add(
                    place,
                    "yaml-surrogate",
                    "half a surrogate pair stands in the text; write the character itself, or "
                    "its code point as \\U and 8 hex digits",
                )
                return Scalar(place, "", plain=False)
            return Scalar(place, event.value, plain, block=event.style in ("|", ">"))
        if depth == MAX_DEPTH:
            self._problems.add(
                place,
                "yaml-depth",
                f"nested more than {MAX_DEPTH} levels deep; flatten it",
            )
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(place, depth + 1)
        return self._sequence(place, depth + 1)

    def _mapping(self, place: Place, depth: int) -> Mapping:
        entries: dict[str, tuple[Scalar, Node]] = {}
        for event in self._events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key = self._subnode(event, depth)
            value = self._subnode(next(self._events), depth)
            if self._key_is_fine(key, entries):
                assert isinstance(key, Scalar)
                entries[key.text] = (key, value)
        return Mapping(place, tuple(entries.values()))

    def _key_is_fine(self, key: Node, entries: dict[str, tuple[Scalar, Node]]) -> bool:
        if not isinstance(key, Scalar):
            self._problems.add(
                key.place,
                "yaml-key",
                "a list or mapping is used as a key; keys are strings",
            )
            return False
        implicit = key.implicit()
        if key.plain and key.text == "<<":
            self._problems.add(
                key.place,
                "yaml-merge",
                "merge key '<<': merges are not part of the schema language; write the keys out",
            )
            return False
        if implicit is not None:
            self._problems.add(
                key.place,
                "yaml-key",
                f"key '{key.text}' is {implicit} to YAML, and keys are strings; "
                f"quote it or choose another name",
            )
            return False
        if key.text in entries:
            first = entries[key.text][0].place
            self._problems.add(
                key.place,
                "yaml-duplicate-key",
                f"key '{key.text}' stands twice, first on line {first.line}; keep one of them",
            )
            return False
        return True

    def _sequence(self, place: Place, depth: int) -> Sequence:
        items: list[Node] = []
        for event in self._events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            items.append(self._subnode(event, depth))
        return Sequence(place, tuple(items))

    def _subnode(self, event: Any, depth: int) -> Node:
        if depth <= MAX_DEPTH:
            return self._node(event, depth)
        return self._skip(event)

    def _skip(self, event: Any) -> Node:
        """Pass over a node below the depth limit without recursion."""
        place = self._place(event)
        opened = 0
        while True:
            if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
                opened += 1
            elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
                opened -= 1
            if opened == 0:
                return Scalar(place, "", plain=False)
            event = next(self._events)

"""Text to the nodes of strict YAML.

The schema files use a subset of YAML in which every value means what it looks like: anchors,
aliases, merges, tags, duplicate keys and non-string keys are problems here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import yaml
from msgen.codegen.schema.errors import Place, Problems

from .events import read_events, split_lines
from .nodes import Broken, Mapping, Node, Scalar, Sequence

MAX_DEPTH = 32
"""Levels of nested YAML collections that a schema file may have."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")


def parse_yaml(text: str, path: str, problems: Problems) -> Node | None:
    """Parse one schema file.

    Returns:
        The root node, or None when the text is not YAML or is empty; ``problems`` says why.
    """
    events = read_events(text, path, problems)
    if events is None:
        return None
    return _Composer(events, text, path, problems).document()


class _Composer:
    """Builds nodes from events, collecting what strict YAML does not allow."""

    def __init__(
        self, events: list[Any], text: str, path: str, problems: Problems
    ) -> None:
        self._events: Iterator[Any] = iter(events)
        self._lines = split_lines(text)
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
                        self._place(event.start_mark),
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

    def _place(self, mark: Any) -> Place:
        return Place(self._path, mark.line + 1, mark.column + 1)

    def _node(self, event: Any, depth: int) -> Node:
        place = self._place(event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            self._problems.add(
                place,
                "yaml-alias",
                f"alias '*{event.anchor}': aliases are not part of the schema language; "
                "repeat the value or declare a struct",
            )
            return Broken(place)
        if event.anchor is not None:
            self._problems.add(
                place,
                "yaml-anchor",
                f"anchor '&{event.anchor}': anchors are not part of the schema language; remove it",
            )
        if event.tag is not None:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            self._problems.add(
                place,
                "yaml-tag",
                f"tag '{tag}': tags are not part of the schema language; remove it",
            )
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, place)
        if depth == MAX_DEPTH:
            self._problems.add(
                place,
                "yaml-depth",
                f"nested more than {MAX_DEPTH} levels deep; flatten it",
            )
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(place, depth + 1)
        return self._sequence(place, depth + 1)

    def _scalar(self, event: Any, place: Place) -> Node:
        if _SURROGATE.search(event.value):
            self._problems.add(
                place,
                "yaml-surrogate",
                "half a surrogate pair stands in the text; write the character itself, or "
                "its code point as \\U and 8 hex digits",
            )
            return Broken(place)
        plain = event.style in (None, "")
        quotes = 1 if event.style in ("'", '"') else 0
        column = self._text_column(event, quotes)
        if column is None:
            return Scalar(place, event.value, plain)
        if event.anchor is not None or event.tag is not None:
            place = Place(self._path, place.line, column - quotes + 1)
        return Scalar(place, event.value, plain, quotes)

    def _text_column(self, event: Any, quotes: int) -> int | None:
        """Return where a scalar's text starts, if the file spells it as it is and on one line."""
        start, end, text = event.start_mark, event.end_mark, event.value
        column: int = end.column - quotes - len(text)
        if not text or start.line != end.line or column < start.column + quotes:
            return None
        return column if self._lines[end.line].startswith(text, column) else None

    def _mapping(self, place: Place, depth: int) -> Mapping:
        entries: dict[str, tuple[Scalar, Node]] = {}
        complete = True
        for event in self._events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            if _is_merge(event):
                self._problems.add(
                    self._place(event.start_mark),
                    "yaml-merge",
                    "merge key '<<': merges are not part of the schema language; write the "
                    "keys out",
                )
                self._skip(next(self._events))
                complete = False
                continue
            key = self._subnode(event, depth)
            value = self._subnode(next(self._events), depth)
            if isinstance(value, Scalar) and value.plain and not value.text:
                # The two parsers put an empty value at different columns.
                value = replace(value, place=self._place(event.end_mark).shifted(1))
            if isinstance(key, Scalar) and self._key_is_fine(key, entries):
                entries[key.text] = (key, value)
            else:
                complete = False
                if isinstance(key, (Mapping, Sequence)):
                    self._problems.add(
                        key.place,
                        "yaml-key",
                        "a list or mapping is used as a key; keys are strings: write a plain name",
                    )
        return Mapping(place, tuple(entries.values()), complete)

    def _key_is_fine(
        self, key: Scalar, entries: dict[str, tuple[Scalar, Node]]
    ) -> bool:
        implicit = key.implicit()
        if implicit is not None:
            self._problems.add(
                key.place,
                "yaml-key",
                f"key {key.shown} is {implicit} to YAML, and keys are strings; {_key_remedy(key)}",
            )
            return False
        if key.text in entries:
            first = entries[key.text][0].place
            self._problems.add(
                key.place,
                "yaml-duplicate-key",
                f"key {key.shown} stands twice, first on line {first.line}; keep one of them",
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

    def _skip(self, event: Any) -> Broken:
        """Pass over a node without recursion and without looking at it."""
        place = self._place(event.start_mark)
        opened = 0
        while True:
            if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
                opened += 1
            elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
                opened -= 1
            if opened == 0:
                return Broken(place)
            event = next(self._events)


def _is_merge(event: Any) -> bool:
    return (
        isinstance(event, yaml.ScalarEvent)
        and event.style in (None, "")
        and event.value == "<<"
    )


def _key_remedy(key: Scalar) -> str:
    if not key.text:
        return "write a name"
    if key.text in ("True", "False", "None"):
        return "choose another name"
    if _WORD.match(key.text):
        return "quote it or choose another name"
    return "write a name, or quote it where it is a key of a default"

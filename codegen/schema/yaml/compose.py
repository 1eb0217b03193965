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
from msgen.codegen.schema.rule import Rule

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
                        YAML_DOCUMENT,
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
                YAML_DOCUMENT,
                "the file is empty; start it with 'group: <name>' or delete it",
            )
            return None
        return root

    def _place(self, mark: Any) -> Place:
        return Place(self._path, mark.line + 1, mark.column + 1)

    def _node(self, event: Any, depth: int) -> Node:
        if depth > MAX_DEPTH:
            return self._skip(event)
        place = self._place(event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            self._problems.add(
                place,
                YAML_ALIAS,
                f"alias '*{event.anchor}': aliases are not part of the schema language; "
                "repeat the value or declare a struct",
            )
            return Broken(place)
        if event.anchor is not None:
            self._problems.add(
                place,
                YAML_ANCHOR,
                f"anchor '&{event.anchor}': anchors are not part of the schema language; remove it",
            )
        if event.tag is not None:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            self._problems.add(
                place,
                YAML_TAG,
                f"tag '{tag}': tags are not part of the schema language; remove it",
            )
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, place)
        if depth == MAX_DEPTH:
            self._problems.add(
                place,
                YAML_DEPTH,
                f"nested more than {MAX_DEPTH} levels deep; flatten it",
            )
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(place, depth + 1)
        return self._sequence(place, depth + 1)

    def _scalar(self, event: Any, place: Place) -> Node:
        if _SURROGATE.search(event.value):
            self._problems.add(
                place,
                YAML_SURROGATE,
                "half a surrogate pair stands in the text; write the character itself, or "
                "its code point as \\U and 8 hex digits",
            )
            return Broken(place)
        plain = not event.style
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
            is_plain = isinstance(event, yaml.ScalarEvent) and not event.style
            if is_plain and event.value == "<<":
                self._problems.add(
                    self._place(event.start_mark),
                    YAML_MERGE,
                    "merge key '<<': merges are not part of the schema language; write the "
                    "keys out",
                )
                self._skip(next(self._events))
                complete = False
                continue
            key = self._node(event, depth)
            value = self._node(next(self._events), depth)
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
                        YAML_KEY,
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
                YAML_KEY,
                f"key {key.shown} is {implicit} to YAML, and keys are strings; {_key_remedy(key)}",
            )
            return False
        if key.text in entries:
            first = entries[key.text][0].place
            self._problems.add(
                key.place,
                YAML_DUPLICATE_KEY,
                f"key {key.shown} stands twice, first on line {first.line}; keep one of them",
            )
            return False
        return True

    def _sequence(self, place: Place, depth: int) -> Sequence:
        items: list[Node] = []
        for event in self._events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            items.append(self._node(event, depth))
        return Sequence(place, tuple(items))

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


def _key_remedy(key: Scalar) -> str:
    if not key.text:
        return "write a name"
    if key.text in ("True", "False", "None"):
        return "choose another name"
    if _WORD.match(key.text):
        return "quote it or choose another name"
    return "write a name, or quote it where it is a key of a default"


YAML_DOCUMENT = Rule(
    "yaml-document",
    "a file is empty, or holds a second YAML document",
    "A file declares one group. Nothing would say what an empty file is for, and most tools read "
    "the first document only, so a second one would pass unseen.",
    "write one group per file, starting with `group: <name>`; delete a file that holds nothing.",
    _Composer.document,
)
YAML_ALIAS = Rule(
    "yaml-alias",
    "a YAML alias (`*name`) stands for a value",
    "What a line declares would stand somewhere else, and an edit there would change it unseen.",
    "repeat the value; where several messages share fields, declare a struct.",
    _Composer._node,
)
YAML_ANCHOR = Rule(
    "yaml-anchor",
    "a YAML anchor (`&name`) stands before a value",
    "Anchors serve aliases and merges, which are not part of the schema language.",
    "remove the anchor.",
    _Composer._node,
)
YAML_TAG = Rule(
    "yaml-tag",
    "a YAML tag (`!name`, `!!str`) stands before a value",
    "A tag changes how a value is read, so that `!!str 1` is not what it looks like. The key "
    "under which a value stands decides its kind.",
    "remove the tag; quote a value that is meant as a string.",
    _Composer._node,
)
YAML_DEPTH = Rule(
    "yaml-depth",
    f"lists and mappings are nested more than {MAX_DEPTH} levels deep",
    "No schema needs that many, and a file that has them is broken, or made to exhaust the stack.",
    "write the value flat; in a default, leave the inner part to the defaults of its fields.",
    _Composer._node,
)
YAML_SURROGATE = Rule(
    "yaml-surrogate",
    "a text holds half of a surrogate pair",
    "Half a pair is no character: it cannot be written as UTF-8, neither into the generated module "
    "nor onto the wire. It comes from `\\ud83d\\ude00` in double quotes, the way of JSON.",
    "write the character itself, or its code point as `\\U` and 8 hex digits.",
    _Composer._scalar,
)
YAML_MERGE = Rule(
    "yaml-merge",
    "a mapping takes in another by the merge key `<<`",
    "The order of fields is their order on the wire, and a merge would add fields that do not "
    "stand where they count.",
    "write the keys out.",
    _Composer._mapping,
)
YAML_KEY = Rule(
    "yaml-key",
    "a key is not a string to YAML",
    "YAML 1.1 reads `no` and `on` as booleans, `012` and `1:30` as numbers and `2024-01-01` as a "
    "date, so that other tools would see another name. A list or mapping cannot be a name at all.",
    "choose another name, or quote it.",
    _Composer._key_is_fine,
)
YAML_DUPLICATE_KEY = Rule(
    "yaml-duplicate-key",
    "a key stands twice in one mapping",
    "YAML parsers keep the last one, so that the first, such as a field, would vanish.",
    "keep one of them, or rename one.",
    _Composer._key_is_fine,
)

"""Nodes to sections: the shape of a schema file, checked against the key table.

After this stage every key is known and every value has the shape its key asks for; what the
values mean is checked later.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from msgen.codegen.schema.errors import Place, Problems
from msgen.codegen.schema.rule import Rule
from msgen.codegen.schema.texts import did_you_mean, shown
from msgen.codegen.schema.yaml import BOOLEANS, Broken, Mapping, Node, Scalar, Sequence

from .language import SECTIONS, SETTINGS, Key
from .section import Entry, EntryValue, Section

_ALL_SECTIONS = {**SECTIONS, **SETTINGS}
_SHORT_FORMS = {"field": "a type, or ", "member": "its number, or "}
_PLACES_OF_ENTRIES = {
    "message": "fields stand under 'fields:'",
    "struct": "fields stand under 'fields:'",
    "enum": "members stand under 'values:'",
}
"""Section to where the names stand that its author may have written as keys."""


def read_section(
    kind: str, name: str, place: Place, node: Node, problems: Problems
) -> Section:
    """Read a mapping node as a section of ``kind``."""
    return _Reader(problems).section(kind, name, place, node)


@dataclass(frozen=True)
class _Reader:
    """Reads values; None stands for one that could not be read, after a problem was reported."""

    problems: Problems

    def _wrong(self, what: str, node: Node, expected: str) -> None:
        if not isinstance(node, Broken):
            self.problems.add(
                node.place,
                WRONG_SHAPE,
                f"{what} is {node.shown}; expected {expected}",
            )

    def section(self, kind: str, name: str, place: Place, node: Node) -> Section:
        keys = _ALL_SECTIONS[kind]
        what = f"{kind} {shown(name)}" if name else f"the {kind}"
        if not isinstance(node, Mapping):
            form = (
                f"{_SHORT_FORMS.get(kind, '')}a mapping with the keys {', '.join(keys)}"
            )
            self._wrong(what, node, form)
            return Section(kind, name, place, _whole=False)
        entries: dict[str, Entry] = {}
        whole = node.complete
        for key, value_node in node.entries:
            spec = keys.get(key.text)
            if spec is None:
                self._unknown_key(kind, what, key)
                whole = False
                continue
            value = self._value(f"'{key.text}' of {what}", spec, value_node)
            complete = value is not None and _is_complete(value_node, value)
            entries[key.text] = Entry(value_node.place, key.place, value, complete)
        if node.complete:
            self._check_required(what, place, keys, entries)
        return Section(kind, name, place, entries, whole)

    def _unknown_key(self, kind: str, what: str, key: Scalar) -> None:
        keys = _ALL_SECTIONS[kind]
        hint = did_you_mean(key.text, keys)
        if not hint:
            hint = f"; the keys are {', '.join(keys)}"
            hint += (
                f", and {_PLACES_OF_ENTRIES[kind]}"
                if kind in _PLACES_OF_ENTRIES
                else ""
            )
        self.problems.add(
            key.place, UNKNOWN_KEY, f"{what} has no key {shown(key.text)}{hint}"
        )

    def _check_required(
        self, what: str, place: Place, keys: dict[str, Key], entries: dict[str, Entry]
    ) -> None:
        for key, spec in keys.items():
            if spec.required and key not in entries:
                meaning = spec.doc[0].lower() + spec.doc[1:].rstrip(".")
                self.problems.add(
                    place,
                    MISSING_KEY,
                    f"{what} needs the key '{key}', {meaning}: add '{key}: {spec.example}'",
                )
                entries[key] = Entry(place, place, None, complete=False)

    def _value(self, what: str, spec: Key, node: Node) -> EntryValue | None:
        kind, _, section = spec.shape.partition(" ")
        if isinstance(node, Broken):
            return None
        if kind == "value":
            return node
        if kind == "names":
            return self._names(what, node)
        if kind in SECTIONS:
            return (self.section(kind, "", node.place, node),)
        if kind == "list":
            return self._list(what, section, node)
        if section:
            return self._map(what, section, kind == "short", node)
        if not isinstance(node, Scalar):
            expected = {
                "count": "an integer",
                "flag": "true or false",
                "date": "a date",
            }
            self._wrong(what, node, expected.get(kind, "a string"))
            return None
        if kind == "flag":
            return self._flag(what, node)
        if kind == "count":
            return self._count(what, spec, node)
        if kind == "date":
            return self._date(what, node)
        remedy = "write it" if spec.required else "write it or remove the key"
        if not self._is_text(what, node, remedy):
            return None
        return node if kind == "type" else node.text

    def _is_text(self, what: str, node: Scalar, remedy: str) -> bool:
        if not node.text:
            self.problems.add(node.place, WRONG_SHAPE, f"{what} is empty; {remedy}")
            return False
        implicit = node.implicit()
        if implicit is not None:
            self.problems.add(
                node.place,
                YAML_IMPLICIT,
                f"{what} is {node.shown}, which is {implicit} to YAML; expected a string: quote it",
            )
        return implicit is None

    def _flag(self, what: str, node: Scalar) -> bool | None:
        if node.plain_text not in BOOLEANS:
            self._wrong(what, node, "true or false")
        return BOOLEANS.get(node.plain_text)

    def _count(self, what: str, spec: Key, node: Scalar) -> int | None:
        if not node.is_integer:
            self._wrong(what, node, "a decimal integer without quotes or leading zeros")
            return None
        number = node.integer(spec.least, spec.most)
        if number is None:
            self.problems.add(
                node.place,
                OUT_OF_RANGE,
                f"{what} is {node.shown}; expected {spec.least} to {spec.most}",
            )
        return number

    def _date(self, what: str, node: Scalar) -> str | None:
        try:
            # Before Python 3.11 it takes this form only, and later ones many more.
            if len(node.text) == 10:
                return date.fromisoformat(node.text).isoformat()
        except ValueError:
            pass
        self._wrong(what, node, "a day, as in 2030-01-31")
        return None

    def _list(self, what: str, kind: str, node: Node) -> tuple[Section, ...] | None:
        if not isinstance(node, Sequence):
            self._wrong(what, node, f"a list of {kind}s")
            return None
        return tuple(self.section(kind, "", item.place, item) for item in node.items)

    def _names(self, what: str, node: Node) -> tuple[Scalar, ...] | None:
        if not isinstance(node, Sequence):
            self._wrong(what, node, "a list of names")
            return None
        names: dict[str, Scalar] = {}
        for item in node.items:
            if not isinstance(item, Scalar):
                self._wrong(f"an item of {what}", item, "a name")
            elif self._is_text(f"an item of {what}", item, "write it or remove it"):
                if item.text in names:
                    self.problems.add(
                        item.place,
                        DUPLICATE_NAME,
                        f"{what} lists {item.shown} twice; remove one",
                    )
                names[item.text] = item
        return tuple(names.values())

    def _map(
        self, what: str, kind: str, short: bool, node: Node
    ) -> tuple[Section, ...] | None:
        if not isinstance(node, Mapping):
            self._wrong(what, node, f"a mapping of {kind} names")
            return None
        sections = []
        for key, value in node.entries:
            if short and isinstance(value, Scalar):
                first = next(iter(SECTIONS[kind]))
                value = Mapping(
                    value.place, ((Scalar(value.place, first, plain=True), value),)
                )
            elif (
                kind == "struct"
                and isinstance(value, Scalar)
                and value.shown == "empty"
            ):
                value = Mapping(value.place, ())
            sections.append(self.section(kind, key.text, key.place, value))
        return tuple(sections)


WRONG_SHAPE = Rule(
    "wrong-shape",
    "a value is not of the kind that its key asks for",
    "A list where one name is expected, or a text where a number is, is most likely at the wrong "
    "key or the wrong level; what was meant cannot be guessed.",
    "write what the message says is expected; `msgen json-schema` lets an editor show it.",
    _Reader._wrong,
)
UNKNOWN_KEY = Rule(
    "unknown-key",
    "a key that the schema language does not have",
    "It would be without effect: a limit that is misspelt would not limit anything.",
    "correct the spelling, or move it: fields stand under `fields`, enum members under `values`.",
    _Reader._unknown_key,
)
MISSING_KEY = Rule(
    "missing-key",
    "a key that is required is not there",
    "A message without a tag, or a field without a type, has no place on the wire, and a number "
    "that the generator chose would change with the next edit.",
    "add the key.",
    _Reader._check_required,
)
YAML_IMPLICIT = Rule(
    "yaml-implicit",
    "a text without quotes is something else to YAML",
    "YAML 1.1 reads `no` and `on` as booleans, `012` and `1:30` as numbers and `2024-01-01` as a "
    "date, so that other tools would see another value than msgen does.",
    "quote the text, or choose another.",
    _Reader._is_text,
)
OUT_OF_RANGE = Rule(
    "out-of-range",
    "a number is outside of what its key allows",
    "The wire has room for no more, such as one byte for a tag, or the number has no meaning, as a "
    "negative length has none.",
    "take a number of the range that the message names.",
    _Reader._count,
)
DUPLICATE_NAME = Rule(
    "duplicate-name",
    "two things have one name",
    "Two types of one name in a group, or one of its own and an imported one, would be one name in "
    "the generated module, and a field could mean either. In a list the second name says nothing.",
    "rename one of the types; remove a name that is listed twice.",
    _Reader._names,
)


def _is_complete(node: Node, value: EntryValue) -> bool:
    """Say whether all that a list of names or a mapping of sections holds was read."""
    if isinstance(node, Sequence) and isinstance(value, tuple):
        return len(value) == len(node.items)
    return not isinstance(node, Mapping) or node.complete

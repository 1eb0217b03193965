"""Layouts that were released: what a module needs to say how a peer of an older one differs.

A message carries the first bits of its fingerprint, which name a layout but do not describe it.
`msgen record` keeps a description of each released layout in `layouts.json`, beside the groups.
`msgen build` compares them with today's and puts the first difference of each into the module.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from msgen.codegen.schema import model
from msgen.codegen.schema.errors import Place, Problems
from msgen.codegen.schema.fingerprint import Fingerprints
from msgen.codegen.schema.rule import Rule

LAYOUTS_FILE = "layouts.json"
FORMAT = 1
LONGEST = 100
"""Most characters of a difference; an error text has room for it."""

NO_DIFFERENCE = "its types differ"
"""Told where a walk through both layouts ends without one, which no known pair does."""

_Records: TypeAlias = Mapping[str, Any]
"""Digest of a struct or message to its fields."""


@dataclass(frozen=True)
class Former:
    """A layout that a group had, as a module tells it."""

    fingerprint: str
    label: str
    difference: str


@dataclass(frozen=True)
class Layouts:
    """The released layouts of a schema, by group, oldest first."""

    by_group: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)

    def former(self, group: model.Group, prints: Fingerprints) -> list[Former]:
        """Return the layouts of a group that are not today's."""
        known = self.by_group.get(group.name)
        if not known:
            return []
        found = []
        today = layout_of(group, prints)
        for each in known:
            if each["fingerprint"] != today["fingerprint"]:
                difference = next(_differences(each, today), NO_DIFFERENCE)
                if len(difference) > LONGEST:
                    difference = f"{difference[: LONGEST - 3]}..."
                found.append(Former(each["fingerprint"], each["label"], difference))
        return found

    def with_release(
        self, schema: model.Schema, label: str
    ) -> tuple[Layouts, list[str]]:
        """Return the layouts with today's added, and the names of the groups that were new."""
        prints = Fingerprints(schema)
        groups = {name: list(each) for name, each in self.by_group.items()}
        added = []
        for group in schema.groups.values():
            layout = layout_of(group, prints)
            known = groups.setdefault(group.name, [])
            if group.messages and layout["fingerprint"] not in {
                each["fingerprint"] for each in known
            }:
                known.append({"label": label, **layout})
                added.append(group.name)
        return Layouts({name: each for name, each in groups.items() if each}), added

    def text(self) -> str:
        """Return the text of the file: a line for each message and struct, to be read in review."""
        groups = ",\n".join(
            f"{json.dumps(name)}: [\n{_joined(map(_layout_text, layouts))}\n]"
            for name, layouts in sorted(self.by_group.items())
        )
        return f'{{"format": {FORMAT}, "layouts": {{\n{groups}\n}}}}\n'


def _layout_text(layout: Mapping[str, Any]) -> str:
    head = ", ".join(
        f"{json.dumps(key)}: {json.dumps(layout[key])}"
        for key in ("label", "fingerprint")
    )
    messages = _joined(map(json.dumps, layout["messages"]))
    records = _joined(
        f"{json.dumps(digest)}: {json.dumps(fields)}"
        for digest, fields in layout["records"].items()
    )
    return f'{{{head}, "messages": [\n{messages}\n], "records": {{\n{records}\n}}}}'


def _joined(texts: Iterable[str]) -> str:
    return ",\n".join(texts)


def layout_of(group: model.Group, prints: Fingerprints) -> dict[str, Any]:
    """Return what the fingerprint of a group is made of, the content of its structs included."""
    messages = prints.canonical(group)["messages"]
    records: dict[str, Any] = {}
    todo = [digest for _, _, fields in messages for digest in _held(fields)]
    while todo:
        digest = todo.pop()
        if digest not in records:
            records[digest] = prints.record(digest)
            todo += _held(records[digest])
    return {
        "fingerprint": prints.of(group),
        "messages": messages,
        "records": dict(sorted(records.items())),
    }


def _held(fields: Any) -> Iterator[str]:
    """Yield the digests of the structs and messages in the canonical fields of a record."""
    if isinstance(fields, list):  # not those of a batch
        for _, form in fields:
            yield from _digests(form)


def _digests(form: Any) -> Iterator[str]:
    """Yield the digests in a canonical type."""
    kind, *parts = [form] if isinstance(form, str) else form
    if kind in ("struct", "message"):
        yield parts[-1]
    elif kind not in ("enum", "tensor"):
        for part in parts:
            yield from _digests(part)


def load_layouts(folder: Path) -> Layouts:
    """Load the released layouts of a schema folder; none where it has no `layouts.json`.

    Raises:
        SchemaError: the file is not as `msgen record` writes it.
    """
    path = folder / LAYOUTS_FILE
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] != FORMAT:
            raise ValueError(f"it has format {data['format']}")
        for layouts in data["layouts"].values():
            for each in layouts:
                int(each["fingerprint"], 16)
                for key in ("label", "messages", "records"):
                    each[key]
    except FileNotFoundError:
        return Layouts()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        problems = Problems()
        problems.add(
            Place(path.as_posix()),
            LAYOUTS_WRONG,
            f"this is not what 'msgen record' writes ({type(error).__name__}: {error}); take it "
            "from version control again, or remove it",
        )
        problems.raise_if_any()
        raise
    return Layouts(data["layouts"])


LAYOUTS_WRONG = Rule(
    "layouts-file",
    "the file of released layouts is not as `msgen record` writes it",
    "Modules could not say how a peer of an older release differs. Most likely the file was edited "
    "by hand, or a merge left its marks in it.",
    "take the file from version control again, or remove it and record the releases anew.",
    finder=load_layouts,
)


def _differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield how the layout of a peer differs from this one, first things first."""
    theirs = {tag: (name, fields) for tag, name, fields in then["messages"]}
    ours = {tag: (name, fields) for tag, name, fields in now["messages"]}
    walk = _Walk(then["records"], now["records"])
    for tag in sorted(theirs.keys() | ours.keys()):
        if tag not in ours:
            yield f"{theirs[tag][0]} (tag {tag}) is there, not here"
        elif tag not in theirs:
            yield f"{ours[tag][0]} (tag {tag}) is here, not there"
        elif theirs[tag][0] != ours[tag][0]:
            yield f"tag {tag} is {theirs[tag][0]} there, {ours[tag][0]} here"
        else:
            yield from walk.fields(ours[tag][0], theirs[tag][1], ours[tag][1])


@dataclass
class _Walk:
    theirs: _Records
    ours: _Records
    seen: set[tuple[str, str]] = field(default_factory=set)

    def fields(self, path: str, then: Any, now: Any) -> Iterator[str]:
        if not isinstance(then, list) or not isinstance(now, list):
            if then != now:
                yield f"{path} is a batch on one side only"
            return
        for slot, (before, after) in enumerate(zip(then, now), 1):
            if before[0] != after[0]:
                yield f"slot {slot} of {path} is {before[0]} there, {after[0]} here"
            elif before[1] != after[1]:
                yield from self.types(f"{path}.{after[0]}", before[1], after[1])
        for name, _ in then[len(now) :]:
            yield f"{path}.{name} is there, not here"
        for name, _ in now[len(then) :]:
            yield f"{path}.{name} is here, not there"

    def types(self, path: str, then: Any, now: Any) -> Iterator[str]:
        """Go down as long as both sides are of one kind; what differs there is the difference."""
        if _kind(then) != _kind(now) or isinstance(then, str) or isinstance(now, str):
            if then != now:
                yield f"{path} is {_spell(then)} there, {_spell(now)} here"
        elif then[0] in ("struct", "message"):
            pair = (then[-1], now[-1])
            if pair[0] != pair[1] and pair not in self.seen:
                self.seen.add(pair)
                yield from self.fields(path, self.theirs[pair[0]], self.ours[pair[1]])
        elif then[0] in ("list", "nullable", "dict", "tuple") and len(then) == len(now):
            for before, after in zip(then[1:], now[1:]):
                if before != after:
                    yield from self.types(path, before, after)
        elif then != now:
            yield f"{path} is {_spell(then)} there, {_spell(now)} here"


def _kind(form: Any) -> Any:
    return form if isinstance(form, str) else form[0]


def _spell(form: Any) -> str:
    """Write a canonical type much as the schema language does."""
    if isinstance(form, str):
        return form
    kind, *rest = form
    if kind in ("struct", "message"):
        return f"a {kind}"
    if kind == "nullable":
        return f"{_spell(rest[0])}?"
    if kind == "union":
        return " | ".join(sorted(map(_spell, rest)))
    if kind == "enum":
        return f"enum {{{', '.join(f'{name}: {number}' for number, name in rest[0])}}}"
    if kind == "tensor":
        dims = rest[1] if isinstance(rest[1], list) else [rest[1]]
        return f"tensor[{', '.join(map(str, (rest[0], *dims)))}]"
    return f"{kind}[{', '.join(map(_spell, rest))}]"

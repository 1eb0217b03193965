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
from typing import Any

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

# What a fingerprint's canonical form calls things.
_BATCH = "batch"
_RECORDS = ("struct", "message")
_HOLDERS = ("list", "nullable", "dict", "tuple")


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
        found = []
        today = layout_of(group, prints) if known else {}
        for each in known or ():
            if each["fingerprint"] != today["fingerprint"]:
                difference = next(_Differences(each, today).messages(), NO_DIFFERENCE)
                if len(difference) > LONGEST:
                    difference = f"{difference[: LONGEST - 3]}..."
                found.append(Former(each["fingerprint"], each["label"], difference))
        return found

    def with_release(
        self, schema: model.Schema, label: str
    ) -> tuple[Layouts, list[str]]:
        """Return the layouts with today's added, and the names of the groups that were new."""
        prints = Fingerprints(schema)
        groups = {name: each for name, each in self.by_group.items() if each}
        added = []
        for group in schema.groups.values():
            layout = layout_of(group, prints)
            known = groups.get(group.name, [])
            prints_known = {each["fingerprint"] for each in known}
            if group.messages and layout["fingerprint"] not in prints_known:
                groups[group.name] = [*known, {"label": label, **layout}]
                added.append(group.name)
        return Layouts(groups), added

    def text(self) -> str:
        """Return the text of the file: a line for each message and struct, to be read in review."""
        groups = _joined(
            f"{json.dumps(name)}: [\n{_joined(map(_layout_text, layouts))}\n]"
            for name, layouts in sorted(self.by_group.items())
        )
        return f'{{"format": {FORMAT}, "layouts": {{\n{groups}\n}}}}\n'


def _layout_text(layout: Mapping[str, Any]) -> str:
    head = json.dumps({key: layout[key] for key in ("label", "fingerprint")})
    messages = _joined(map(json.dumps, layout["messages"]))
    records = _joined(
        f"{json.dumps(digest)}: {json.dumps(fields)}"
        for digest, fields in layout["records"].items()
    )
    return f'{head[:-1]}, "messages": [\n{messages}\n], "records": {{\n{records}\n}}}}'


def _joined(texts: Iterable[str]) -> str:
    return ",\n".join(texts)


def layout_of(group: model.Group, prints: Fingerprints) -> dict[str, Any]:
    """Return what the fingerprint of a group is made of, the content of its structs included."""
    messages = prints.canonical(group)["messages"]
    records: dict[str, Any] = {}
    todo = [fields for _, _, fields in messages]
    while todo:
        fields = todo.pop()
        for _, form in [] if fields == _BATCH else fields:
            for digest in _digests(form):
                if digest not in records:
                    records[digest] = prints.record(digest)
                    todo.append(records[digest])
    return {
        "fingerprint": prints.of(group),
        "messages": messages,
        "records": dict(sorted(records.items())),
    }


def _digests(form: Any) -> Iterator[str]:
    """Yield the digests of structs and messages in a canonical type."""
    kind, *parts = _parts(form)
    if kind in _RECORDS:
        yield parts[-1]
    elif kind not in ("enum", "tensor"):
        for part in parts:
            yield from _digests(part)


def _parts(form: Any) -> list[Any]:
    """Return the kind of a canonical type, and what it is made of."""
    return [form] if isinstance(form, str) else form


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


@dataclass
class _Differences:
    """How the layout of a peer differs from ours, first things first.

    Recorded layouts are no schemas: names of types, defaults and limits are not in them. So they
    are not judged as a diff judges, and only the first difference is told.
    """

    then: Mapping[str, Any]
    now: Mapping[str, Any]
    seen: set[tuple[str, str]] = field(default_factory=set)

    def messages(self) -> Iterator[str]:
        theirs, ours = (
            {tag: (name, fields) for tag, name, fields in layout["messages"]}
            for layout in (self.then, self.now)
        )
        for tag in sorted(theirs.keys() | ours.keys()):
            if tag not in ours:
                yield f"{theirs[tag][0]} (tag {tag}) is there, not here"
            elif tag not in theirs:
                yield f"{ours[tag][0]} (tag {tag}) is here, not there"
            elif theirs[tag][0] != ours[tag][0]:
                yield f"tag {tag} is {theirs[tag][0]} there, {ours[tag][0]} here"
            else:
                yield from self._fields(ours[tag][0], theirs[tag][1], ours[tag][1])

    def _fields(self, path: str, theirs: Any, ours: Any) -> Iterator[str]:
        if _BATCH in (theirs, ours):
            if theirs != ours:
                yield f"{path} is a batch on one side only"
            return
        for slot, ((name, form), (own, own_form)) in enumerate(zip(theirs, ours), 1):
            if name != own:
                yield f"slot {slot} of {path} is {name} there, {own} here"
            else:
                yield from self._types(f"{path}.{name}", form, own_form)
        yield from (
            f"{path}.{name} is there, not here" for name, _ in theirs[len(ours) :]
        )
        yield from (
            f"{path}.{name} is here, not there" for name, _ in ours[len(theirs) :]
        )

    def _types(self, path: str, theirs: Any, ours: Any) -> Iterator[str]:
        """Go down as long as both sides are of one kind; what differs there is the difference."""
        (kind, *before), (own_kind, *after) = _parts(theirs), _parts(ours)
        if theirs == ours:
            return
        if kind == own_kind and kind in _RECORDS:
            pair = before[-1], after[-1]
            if pair not in self.seen:
                self.seen.add(pair)
                fields = self.then["records"][pair[0]], self.now["records"][pair[1]]
                yield from self._fields(path, *fields)
        elif kind == own_kind and kind in _HOLDERS and len(before) == len(after):
            for each, own in zip(before, after):
                yield from self._types(path, each, own)
        else:
            yield f"{path} is {_spell(theirs)} there, {_spell(ours)} here"


def _spell(form: Any) -> str:
    """Write a canonical type much as the schema language does."""
    kind, *rest = _parts(form)
    if kind in _RECORDS:
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
    return f"{kind}[{', '.join(map(_spell, rest))}]" if rest else str(kind)

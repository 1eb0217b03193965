"""Two versions of a schema, walked side by side: every change, and what leads to it.

Structs and enums are paired by the way they are reached, from one place of both versions, so that a
struct may move to another file, change its name, or be split in two without being taken for
another. The walk keeps what reaches what, so that each change can be told with the messages that
it concerns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from msgen.codegen.schema import model
from msgen.codegen.schema.errors import Place

from .change import Change, Node
from .enums import compare_enums
from .fields import FieldComparer
from .groups import compare_group
from .messages import compare_messages
from .pairing import GroupPair, pair_groups
from .records import RecordPair, key_place
from .types import TypeComparer


@dataclass(frozen=True)
class Site:
    """A field that holds a declared type in both versions."""

    subject: str
    old_subject: str
    place: Place
    old_place: Place
    what: str


@dataclass
class Walk:
    """What a walk through two schemas found.

    Attributes:
        group_changes: about a group as a whole.
        message_changes: about a message as a whole, such as its tag.
        changes: about what is inside of a declared type, by that type.
        live_parents: node to the nodes whose values hold it in both versions.
        counted_parents: node to the nodes in whose part of the fingerprint it counts.
        messages: node of a message to the pair of its group.
    """

    old: model.Schema
    new: model.Schema
    groups: list[GroupPair] = field(default_factory=list)
    group_changes: list[tuple[GroupPair, Change]] = field(default_factory=list)
    message_changes: list[tuple[Node, Change]] = field(default_factory=list)
    changes: dict[Node, list[Change]] = field(default_factory=dict)
    live_parents: defaultdict[Node, set[Node]] = field(
        default_factory=lambda: defaultdict(set)
    )
    counted_parents: defaultdict[Node, set[Node]] = field(
        default_factory=lambda: defaultdict(set)
    )
    messages: dict[Node, GroupPair] = field(default_factory=dict)
    met: dict[Node, list[Site]] = field(default_factory=dict)
    """Every node that was reached, in order, and the fields that hold it."""


def walk(old: model.Schema, new: model.Schema) -> Walk:
    """Compare two schemas."""
    return _Walker(old, new).run()


class _Walker:
    def __init__(self, old: model.Schema, new: model.Schema) -> None:
        self._found = Walk(old, new)
        self._new_of: dict[model.MessageType, model.MessageType] = {}
        self._keys: set[Node] = set()
        self._todo: list[Node] = []
        self._homes: dict[str, str] = {}

    def run(self) -> Walk:
        found = self._found
        found.groups = pair_groups(found.old, found.new)
        self._homes = {
            pair.old.name: pair.new.name
            for pair in found.groups
            if pair.old and pair.new
        }
        for pair in found.groups:
            for change in compare_group(pair):
                found.group_changes.append((pair, change))
            self._messages(pair)
        while self._todo:
            self._record(self._todo.pop())
        for node in found.met:
            if isinstance(node.old, model.EnumType) and isinstance(
                node.new, model.EnumType
            ):
                old, new = found.old.enum(node.old), found.new.enum(node.new)
                changes = compare_enums(
                    old, new, self._known_version(node), node in self._keys
                )
                self._note(node, changes)
        return found

    def _messages(self, pair: GroupPair) -> None:
        found = self._found
        messages = compare_messages(pair)
        for node in (*messages.same, *messages.others):
            found.messages[node] = pair
            found.met[node] = []
        found.message_changes += messages.changes
        for node in messages.same:
            assert isinstance(node.old, model.MessageType)
            assert isinstance(node.new, model.MessageType)
            self._new_of[node.old] = node.new
            self._todo.append(node)
        nodes = (*messages.same, *messages.others)
        for batch in nodes:
            if any(each.is_batch for each in self._both(batch)):
                for node in nodes:
                    if node != batch:
                        found.live_parents[node].add(batch)

    def _both(self, node: Node) -> Iterator[model.Message]:
        if isinstance(node.old, model.MessageType):
            yield self._found.old.message(node.old)
        if isinstance(node.new, model.MessageType):
            yield self._found.new.message(node.new)

    def _record(self, node: Node) -> None:
        assert isinstance(node.old, (model.StructType, model.MessageType))
        assert isinstance(node.new, (model.StructType, model.MessageType))
        old, new = self._found.old.record(node.old), self._found.new.record(node.new)
        if isinstance(old, model.Message) and old.is_batch:
            return  # its field follows from the messages of the group
        messages = list(self._both(node))
        dead = any(each.removed for each in messages)
        if dead and any(each.since > 1 for each in messages):
            return  # no reader and no fingerprint knows its fields

        pair = RecordPair(old, new, self._known_version(node))

        def types(before: model.Field, now: model.Field) -> TypeComparer:
            counts = before.since == now.since == 1
            live = not (before.removed or now.removed or dead)
            places = (key_place(now, "type"), key_place(before, "type"))
            names = (pair.subject(now), pair.old_subject(before))
            site = Site(*names, *places, pair.what(now))

            def meet(child: Node, counts_here: bool, is_key: bool) -> None:
                self._meet(child, site)
                if live:
                    self._found.live_parents[child].add(node)
                if counts and counts_here:
                    self._found.counted_parents[child].add(node)
                if is_key:
                    self._keys.add(child)

            return TypeComparer(
                meet, self._is_paired, self._counts_in_old, self._counts_in_new
            )

        comparer = FieldComparer(self._found.old, self._found.new, types)
        changes = comparer.compare(pair)
        if dead:
            # Nobody reads or writes its slots; only the fingerprint knows them still.
            changes = (
                replace(change, new_takes_old=True, old_takes_new=True, source=False)
                for change in changes
                if change.counts
            )
        self._note(node, changes)

    def _note(self, node: Node, changes: Iterator[Change]) -> None:
        for change in changes:
            self._found.changes.setdefault(node, []).append(change)

    def _meet(self, child: Node, site: Site) -> None:
        if child not in self._found.met:
            self._found.met[child] = []
            if isinstance(child.old, model.StructType):
                self._todo.append(child)
        self._found.met[child].append(site)

    def _is_paired(self, old: model.MessageType, new: model.MessageType) -> bool:
        return self._new_of.get(old) == new

    def _counts_in_old(self, message: model.MessageType) -> bool:
        return self._found.old.message(message).since == 1

    def _counts_in_new(self, message: model.MessageType) -> bool:
        return self._found.new.message(message).since == 1

    def _known_version(self, node: Node) -> int | None:
        assert node.old is not None and node.new is not None
        if self._homes.get(node.old.group) != node.new.group:
            return None
        return self._found.old.groups[node.old.group].version

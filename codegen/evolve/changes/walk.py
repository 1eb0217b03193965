"""Two versions of a schema, walked side by side: every change, and what leads to it.

Structs and enums are paired by the way they are reached, from one place of both versions, so that a
struct may move to another file, change its name, or be split in two without being taken for
another. The walk keeps what reaches what, so that each change can be told with the messages that
it concerns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from msgen.codegen.schema import model

from .change import Change, Node
from .enums import diff_enums
from .fields import diff_field
from .groups import diff_group
from .messages import diff_messages
from .pairing import GroupPair, align_fields, pair_groups
from .pairs import RecordPair
from .slots import diff_slots
from .tensors import dim_symbol_changed
from .types import Held, TypeDiffer


class Walk:
    """A walk through two schemas, and what it found.

    Attributes:
        groups: the groups of both versions, paired.
        homes: the names of groups that both versions have: old to new.
        group_changes: about a group as a whole.
        message_changes: about a message as a whole, such as its tag.
        changes: about what is inside of a declared type, by that type.
        live_parents: node to the nodes whose values hold it in both versions.
        counted_parents: node to the nodes in whose part of the fingerprint it counts.
        messages: node of a message to the pair of its group.
        met: every node that was reached, in order, and the fields that hold it.
    """

    def __init__(self, old: model.Schema, new: model.Schema) -> None:
        self.old, self.new = old, new
        self.groups = pair_groups(old, new)
        self.homes = {
            pair.old.name: pair.new.name
            for pair in self.groups
            if pair.old and pair.new
        }
        self.group_changes: list[tuple[GroupPair, Change]] = []
        self.message_changes: list[tuple[Node, Change]] = []
        self.changes: defaultdict[Node, list[Change]] = defaultdict(list)
        self.live_parents: defaultdict[Node, set[Node]] = defaultdict(set)
        self.counted_parents: defaultdict[Node, set[Node]] = defaultdict(set)
        self.messages: dict[Node, GroupPair] = {}
        self.met: dict[Node, list[Held]] = {}
        self._new_of: dict[model.MessageType, model.MessageType] = {}
        self._types = TypeDiffer(old, new, self._new_of)
        self._todo: list[Node] = []
        self._run()

    def _run(self) -> None:
        for pair in self.groups:
            self.group_changes += ((pair, change) for change in diff_group(pair))
            self._messages(pair)
        while self._todo:
            node = self._todo.pop()
            self.changes[node] += self._record(node)
        for node, held in self.met.items():
            if isinstance(node.old, model.EnumType):
                assert isinstance(node.new, model.EnumType)
                old, new = self.old.enum(node.old), self.new.enum(node.new)
                is_key = any(each.is_key for each in held)
                version = self._known_version(node)
                self.changes[node] += diff_enums(old, new, version, is_key)

    def _messages(self, pair: GroupPair) -> None:
        pairs = list(diff_messages(pair))
        for each in pairs:
            node = each.node
            self.messages[node] = pair
            self.met[node] = []
            self.message_changes += ((node, change) for change in each.changes)
            if each.is_same:
                assert isinstance(node.old, model.MessageType)
                assert isinstance(node.new, model.MessageType)
                self._new_of[node.old] = node.new
                self._todo.append(node)
        for batch in pairs:
            if any(each.is_batch for each in self._both(batch.node)):
                for each in pairs:
                    if each is not batch:
                        self.live_parents[each.node].add(batch.node)

    def _both(self, node: Node) -> Iterator[model.Message]:
        if isinstance(node.old, model.MessageType):
            yield self.old.message(node.old)
        if isinstance(node.new, model.MessageType):
            yield self.new.message(node.new)

    def _record(self, node: Node) -> Iterator[Change]:
        """Yield the changes of what is in a struct or message."""
        assert isinstance(node.old, (model.StructType, model.MessageType))
        assert isinstance(node.new, (model.StructType, model.MessageType))
        old, new = self.old.record(node.old), self.new.record(node.new)
        if isinstance(old, model.Message) and old.is_batch:
            return  # its field follows from the messages of the group
        messages = list(self._both(node))
        dead = any(each.removed for each in messages)
        if dead and any(each.since > 1 for each in messages):
            return  # no reader and no fingerprint knows its fields
        for found in self._fields(RecordPair(old, new, self._known_version(node))):
            if isinstance(found, Held):
                self._hold(node, found, dead)
            elif not dead:
                yield found
            elif found.counts:
                # Nobody reads or writes its slots; only the fingerprint knows them still.
                yield replace(found, takes=(True, True), source=False)

    def _fields(self, pair: RecordPair) -> Iterator[Change | Held]:
        aligned = align_fields(pair.old.fields, pair.new.fields)
        kept = sorted((*aligned.kept, *aligned.moved), key=lambda each: each[1])
        both = [pair.both(pair.old.fields[i], pair.new.fields[j]) for i, j in kept]
        for each in both:
            yield from diff_field(each, self._types)
        yield from diff_slots(pair, aligned)
        alive = [each for each in both if not each.old.removed and not each.new.removed]
        yield from dim_symbol_changed(alive)

    def _hold(self, parent: Node, held: Held, dead: bool) -> None:
        child, field = held.node, held.field
        if child not in self.met:
            self.met[child] = []
            if isinstance(child.old, model.StructType):
                self._todo.append(child)
        self.met[child].append(held)
        if not (dead or field.old.removed or field.new.removed):
            self.live_parents[child].add(parent)
        if held.counts:
            self.counted_parents[child].add(parent)

    def _known_version(self, node: Node) -> int | None:
        """Return the version of the old group that declares a type, None where it moved."""
        assert node.old is not None and node.new is not None
        if self.homes.get(node.old.group) != node.new.group:
            return None
        return self.old.groups[node.old.group].version

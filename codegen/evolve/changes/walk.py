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
from functools import cached_property

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
        met: every node that was reached, in order, and the fields that hold it.
    """

    old: model.Schema
    new: model.Schema
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
    met: dict[Node, list[Held]] = field(default_factory=dict)

    @cached_property
    def groups(self) -> list[GroupPair]:
        return pair_groups(self.old, self.new)

    @cached_property
    def homes(self) -> dict[str, str]:
        """The names of groups that both versions have: old to new."""
        return {
            pair.old.name: pair.new.name
            for pair in self.groups
            if pair.old and pair.new
        }


def walk(old: model.Schema, new: model.Schema) -> Walk:
    """Walk through two schemas."""
    walker = _Walker(Walk(old, new))
    walker.run()
    return walker.found


class _Walker:
    def __init__(self, found: Walk) -> None:
        self.found = found
        self._new_of: dict[model.MessageType, model.MessageType] = {}
        self._types = TypeDiffer(found.old, found.new, self._new_of)
        self._todo: list[Node] = []

    def run(self) -> None:
        found = self.found
        for pair in found.groups:
            found.group_changes += ((pair, change) for change in diff_group(pair))
            self._messages(pair)
        while self._todo:
            node = self._todo.pop()
            self._note(node, self._record(node))
        for node, held in found.met.items():
            if isinstance(node.old, model.EnumType):
                assert isinstance(node.new, model.EnumType)
                old, new = found.old.enum(node.old), found.new.enum(node.new)
                is_key = any(each.is_key for each in held)
                version = self._known_version(node)
                self._note(node, diff_enums(old, new, version, is_key))

    def _note(self, node: Node, changes: Iterator[Change]) -> None:
        for change in changes:
            self.found.changes.setdefault(node, []).append(change)

    def _messages(self, pair: GroupPair) -> None:
        found = self.found
        pairs = list(diff_messages(pair))
        for each in pairs:
            node = each.node
            found.messages[node] = pair
            found.met[node] = []
            found.message_changes += ((node, change) for change in each.changes)
            if each.is_same:
                assert isinstance(node.old, model.MessageType)
                assert isinstance(node.new, model.MessageType)
                self._new_of[node.old] = node.new
                self._todo.append(node)
        for batch in pairs:
            if any(each.is_batch for each in self._both(batch.node)):
                for each in pairs:
                    if each is not batch:
                        found.live_parents[each.node].add(batch.node)

    def _both(self, node: Node) -> Iterator[model.Message]:
        if isinstance(node.old, model.MessageType):
            yield self.found.old.message(node.old)
        if isinstance(node.new, model.MessageType):
            yield self.found.new.message(node.new)

    def _record(self, node: Node) -> Iterator[Change]:
        """Yield the changes of what is in a struct or message."""
        assert isinstance(node.old, (model.StructType, model.MessageType))
        assert isinstance(node.new, (model.StructType, model.MessageType))
        old, new = self.found.old.record(node.old), self.found.new.record(node.new)
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
                yield replace(
                    found, new_takes_old=True, old_takes_new=True, source=False
                )

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
        child, field_ = held.node, held.field
        if child not in self.found.met:
            self.found.met[child] = []
            if isinstance(child.old, model.StructType):
                self._todo.append(child)
        self.found.met[child].append(held)
        if not (dead or field_.old.removed or field_.new.removed):
            self.found.live_parents[child].add(parent)
        if held.counts:
            self.found.counted_parents[child].add(parent)

    def _known_version(self, node: Node) -> int | None:
        assert node.old is not None and node.new is not None
        if self.found.homes.get(node.old.group) != node.new.group:
            return None
        return self.found.old.groups[node.old.group].version

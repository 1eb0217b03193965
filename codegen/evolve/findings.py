"""Two versions of a schema to findings: what each change means, for whom, and in which order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from msgen.codegen.evolve.changes.change import (
    BROKEN,
    DEPLOYMENT,
    NOTHING,
    OK,
    REFUSED,
    SOURCE,
    WIRE,
    Change,
    Comparison,
    Finding,
    GroupVerdict,
    Node,
)
from msgen.codegen.evolve.changes.names import compare_names
from msgen.codegen.evolve.changes.pairing import GroupPair
from msgen.codegen.evolve.changes.walk import Walk, walk
from msgen.codegen.evolve.rules.table import RULES
from msgen.codegen.schema import model
from msgen.codegen.schema.errors import Place
from msgen.codegen.schema.fingerprint import Fingerprints

from .rollout import Rollout

_Ways: TypeAlias = tuple[str, str]
"""What becomes of old messages at new readers, and of new messages at old readers."""


def diff(
    old: model.Schema, new: model.Schema, against: str = "", label: str = ""
) -> Comparison:
    """Compare two versions of a schema.

    Args:
        against: how the user called the old version.
        label: what it stands for, such as a commit's id.

    Returns:
        Every finding, sorted by place, and a verdict for every group that both versions have.
    """
    return _Judge(walk(old, new)).comparison(against, label)


class _Judge:
    def __init__(self, found: Walk) -> None:
        self._found = found
        old, new = Fingerprints(found.old), Fingerprints(found.new)
        self._differing = {
            pair
            for pair in found.groups
            if pair.old
            and pair.new
            and (pair.old.messages or pair.new.messages)
            and old.of(pair.old) != new.of(pair.new)
        }
        self._by_group: defaultdict[GroupPair, list[_Ways]] = defaultdict(list)
        self._plan = Rollout()

    def comparison(self, against: str, label: str) -> Comparison:
        findings = [*self._findings(), *self._unexplained()]
        findings.sort(key=_place_in_folder)
        verdicts = tuple(
            self._verdict(pair)
            for pair in self._found.groups
            if pair.old and pair.new and (pair.old.messages or pair.new.messages)
        )
        text = self._plan.text(of_several=True)
        return Comparison(against, label, tuple(findings), verdicts, text)

    def _findings(self) -> Iterator[Finding]:
        found = self._found
        for pair, change in found.group_changes:
            refused = change.counts and pair in self._differing
            ways = (REFUSED, REFUSED) if refused else _ways(change)
            has_messages = bool(pair.either.messages)
            messages = self._messages_of(pair) if has_messages else []
            yield self._make(change, messages, {pair: ways} if has_messages else {})
        for node, change in found.message_changes:
            counted = self._counted(node) | {found.messages[node]}
            yield self._finding(change, self._reached(node), counted)
        for node, changes in found.changes.items():
            reached, counted = self._reached(node), self._counted(node)
            yield from (self._finding(each, reached, counted) for each in changes)
        for named, change in compare_names(found):
            reached = [] if named is None else self._reached(named)
            yield self._finding(change, reached, set())

    def _messages_of(self, pair: GroupPair) -> list[Node]:
        return [node for node, home in self._found.messages.items() if home == pair]

    def _reached(self, node: Node) -> list[Node]:
        """Return the messages whose values may hold a node, itself included."""
        seen = _ancestors(node, self._found.live_parents)
        return [each for each in seen if each in self._found.messages]

    def _counted(self, node: Node) -> set[GroupPair]:
        """Return the groups whose fingerprint sees what is in a node."""
        seen = _ancestors(node, self._found.counted_parents)
        return {
            self._found.messages[each]
            for each in seen
            if each in self._found.messages and self._counts(each)
        }

    def _finding(
        self, change: Change, reached: list[Node], counted: set[GroupPair]
    ) -> Finding:
        """Tell a change with what it means in each group that it reaches.

        Where a group's fingerprint changed because of it, nothing is misread: all is refused.
        """
        ways = {self._found.messages[node]: _ways(change) for node in reached}
        if change.counts:
            for pair in counted & self._differing:
                ways[pair] = (REFUSED, REFUSED)
        return self._make(change, reached, ways)

    def _make(
        self, change: Change, reached: Iterable[Node], ways: Mapping[GroupPair, _Ways]
    ) -> Finding:
        rule = RULES[change.rule]
        plan = Rollout()
        readers: set[str] = set()
        senders: set[str] = set()
        groups = sorted(ways, key=lambda pair: pair.either.name)
        for pair in groups:
            self._by_group[pair].append(ways[pair])
            for order in (plan, self._plan):
                _plan(order, pair, ways[pair])
            for group in (pair.old, pair.new):
                if group is not None and group.receiver is not None:
                    readers.add(group.receiver)
                    senders |= set(group.senders)
        if change.deployment:
            plan.together |= readers | senders
            self._plan.together |= readers | senders
        new_reads_old = _worst(each for each, _ in ways.values())
        old_reads_new = _worst(each for _, each in ways.values())
        breaks = SOURCE if change.source else NOTHING
        if new_reads_old != OK or old_reads_new != OK:
            breaks = WIRE
        elif change.deployment:
            breaks = DEPLOYMENT
        return Finding(
            change,
            rule.severity if breaks in (WIRE, DEPLOYMENT) else rule.harmless,
            breaks,
            new_reads_old,
            old_reads_new,
            tuple(pair.either.name for pair in groups),
            tuple(sorted(_names(node.new for node in reached))),
            tuple(sorted(_names(node.old for node in reached))),
            tuple(sorted(readers)),
            tuple(sorted(senders)),
            plan.text(),
        )

    def _counts(self, node: Node) -> bool:
        """Say whether a message is in the fingerprint of its group in both versions."""
        found = self._found
        return (
            isinstance(node.old, model.MessageType)
            and isinstance(node.new, model.MessageType)
            and found.old.message(node.old).since == 1
            and found.new.message(node.new).since == 1
        )

    def _unexplained(self) -> Iterator[Finding]:
        """Yield a finding for a group whose fingerprint changed without any other finding."""
        for pair in sorted(self._differing, key=lambda each: each.either.name):
            if (REFUSED, REFUSED) in self._by_group[pair]:
                continue
            assert pair.old is not None and pair.new is not None
            change = Change(
                "LAYOUT_CHANGED",
                pair.new.name,
                pair.new.place,
                pair.old.place,
                f"the fingerprint of group '{pair.new.name}' changed",
                old_subject=pair.old.name,
                counts=True,
            )
            yield self._make(
                change, self._messages_of(pair), {pair: (REFUSED, REFUSED)}
            )

    def _verdict(self, pair: GroupPair) -> GroupVerdict:
        same = pair not in self._differing
        listed = self._by_group[pair]
        ways = (
            (_worst(each for each, _ in listed), _worst(each for _, each in listed))
            if same
            else (REFUSED, REFUSED)
        )
        plan = Rollout()
        for each in listed:
            _plan(plan, pair, each)
        text = plan.text(of_several=True)
        return GroupVerdict(pair.either.name, _receiver(pair) or "", same, *ways, text)


def _place_in_folder(finding: Finding) -> tuple[str, Place, str, str]:
    """Sort by file name first: a thing that is gone has its place in a folder of the old version."""
    change = finding.change
    name = change.place.path.rpartition("/")[2].rpartition(":")[2]
    return name, change.place, change.rule, change.text


def _ways(change: Change) -> _Ways:
    return (
        OK if change.new_takes_old else BROKEN,
        OK if change.old_takes_new else BROKEN,
    )


def _worst(ways: Iterable[str]) -> str:
    return max(ways, key=(OK, REFUSED, BROKEN).index, default=OK)


def _receiver(pair: GroupPair) -> str | None:
    """Return who reads a group: a group that lost its messages names nobody any more."""
    groups = [each for each in (pair.new, pair.old) if each is not None]
    return next((each.receiver for each in groups if each.receiver), None)


def _plan(rollout: Rollout, pair: GroupPair, ways: _Ways) -> None:
    receiver = _receiver(pair)
    if receiver is not None:
        groups = [each for each in (pair.old, pair.new) if each is not None]
        senders = {each for group in groups for each in group.senders}
        rollout.add(receiver, sorted(senders), *ways)


def _ancestors(node: Node, parents: Mapping[Node, set[Node]]) -> set[Node]:
    """Return the nodes that lead to a node, itself included."""
    seen = {node}
    todo = [node]
    while todo:
        for parent in parents.get(todo.pop(), ()):
            if parent not in seen:
                seen.add(parent)
                todo.append(parent)
    return seen


def _names(refs: Iterable[model.Type | None]) -> Iterator[str]:
    for ref in refs:
        if isinstance(ref, model.MessageType):
            yield f"{ref.group}.{ref.name}"


def has_errors(comparisons: Iterable[Comparison]) -> bool:
    """Say whether a finding makes the run fail."""
    return any(finding.is_breaking for each in comparisons for finding in each.findings)

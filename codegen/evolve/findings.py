"""Two versions of a schema to findings: what each change means, for whom, and in which order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from msgen.codegen.schema import model
from msgen.codegen.schema.errors import Place
from msgen.codegen.schema.fingerprint import Fingerprints
from msgen.codegen.schema.rule import ERROR

from .changes import Change, ChangeRule, GroupPair, Node, Walk, diff_type_names
from .outcome import (
    BROKEN,
    DEPLOYMENT,
    NOTHING,
    OK,
    REFUSED,
    SOURCE,
    WIRE,
    Diff,
    Finding,
    GroupVerdict,
)
from .rollout import Rollout

_Ways: TypeAlias = tuple[str, str]
"""What becomes of old messages at new readers, and of new messages at old readers."""
_BOTH_REFUSED = (REFUSED, REFUSED)


def diff(
    old: model.Schema, new: model.Schema, against: str = "", label: str = ""
) -> Diff:
    """Compare two versions of a schema.

    Args:
        against: how the user called the old version.
        label: what it stands for, such as a commit's id.

    Returns:
        Every finding, sorted by place, and a verdict for every group that both versions have.
    """
    return _Judge(Walk(old, new)).diff(against, label)


class _Judge:
    def __init__(self, found: Walk) -> None:
        self._found = found
        self._judged = [
            (pair, pair.old, pair.new)
            for pair in found.groups
            if pair.old and pair.new and (pair.old.messages or pair.new.messages)
        ]
        old_prints, new_prints = Fingerprints(found.old), Fingerprints(found.new)
        self._differing = {
            pair
            for pair, old, new in self._judged
            if old_prints.of(old) != new_prints.of(new)
        }
        self._by_group: defaultdict[GroupPair, list[_Ways]] = defaultdict(list)
        self._rollout = Rollout()

    def diff(self, against: str, label: str) -> Diff:
        findings = [*self._findings(), *self._unexplained()]
        findings.sort(key=_place_in_folder)
        verdicts = tuple(self._verdict(pair) for pair, _, _ in self._judged)
        text = self._rollout.text(of_several=True)
        return Diff(against, label, tuple(findings), verdicts, text)

    def _findings(self) -> Iterator[Finding]:
        found = self._found
        for pair, change in found.group_changes:
            refused = change.counts and pair in self._differing
            yield self._of_group(
                change, pair, _BOTH_REFUSED if refused else _ways(change)
            )
        for node, change in found.message_changes:
            counted = self._counted(node) | {found.messages[node]}
            yield self._reaching(change, self._reached(node), counted)
        for node, changes in found.changes.items():
            reached, counted = self._reached(node), self._counted(node)
            yield from (self._reaching(each, reached, counted) for each in changes)
        for named, change in diff_type_names(found):
            reached = [] if named is None else self._reached(named)
            yield self._reaching(change, reached, set())

    def _unexplained(self) -> Iterator[Finding]:
        """Yield a finding for a group whose fingerprint changed without any other finding."""
        for pair, old, new in self._judged:
            if pair in self._differing and _BOTH_REFUSED not in self._by_group[pair]:
                yield self._of_group(layout_changed(old, new), pair, _BOTH_REFUSED)

    def _reached(self, node: Node) -> list[Node]:
        """Return the messages whose values may hold a node, itself included."""
        seen = _ancestors(node, self._found.live_parents)
        return [each for each in seen if each in self._found.messages]

    def _counted(self, node: Node) -> set[GroupPair]:
        """Return the groups whose fingerprint sees what is in a node."""
        seen = _ancestors(node, self._found.counted_parents)
        messages = self._found.messages
        return {
            messages[each] for each in seen if each in messages and self._counts(each)
        }

    def _counts(self, node: Node) -> bool:
        """Say whether a message is in the fingerprint of its group in both versions."""
        return (
            isinstance(node.old, model.MessageType)
            and isinstance(node.new, model.MessageType)
            and self._found.old.message(node.old).since == 1
            and self._found.new.message(node.new).since == 1
        )

    def _of_group(self, change: Change, pair: GroupPair, ways: _Ways) -> Finding:
        messages = [node for node, home in self._found.messages.items() if home == pair]
        return self._finding(change, messages, {pair: ways} if messages else {})

    def _reaching(
        self, change: Change, reached: list[Node], counted: set[GroupPair]
    ) -> Finding:
        """Tell a change with what it means in each group that it reaches.

        Where a group's fingerprint changed because of it, nothing is misread: all is refused.
        """
        ways = {self._found.messages[node]: _ways(change) for node in reached}
        if change.counts:
            ways |= dict.fromkeys(counted & self._differing, _BOTH_REFUSED)
        return self._finding(change, reached, ways)

    def _finding(
        self, change: Change, reached: Iterable[Node], ways: Mapping[GroupPair, _Ways]
    ) -> Finding:
        rollout = Rollout()
        groups = sorted(ways, key=lambda pair: pair.either.name)
        for pair in groups:
            self._by_group[pair].append(ways[pair])
            _add(rollout, pair, ways[pair])
        read = [each for pair in groups for each in pair.sides if each.receiver]
        readers = {each.receiver for each in read if each.receiver}
        senders = {sender for each in read for sender in each.senders}
        if change.deployment:
            rollout.together |= readers | senders
        self._rollout.together |= rollout.together
        self._rollout.before |= rollout.before
        worst = _worst(ways.values())
        breaks = SOURCE if change.source else NOTHING
        if worst != (OK, OK):
            breaks = WIRE
        elif change.deployment:
            breaks = DEPLOYMENT
        hurts = breaks in (WIRE, DEPLOYMENT)
        return Finding(
            change,
            change.rule.severity if hurts else change.rule.harmless,
            breaks,
            *worst,
            tuple(pair.either.name for pair in groups),
            _message_names(node.new for node in reached),
            _message_names(node.old for node in reached),
            tuple(sorted(readers)),
            tuple(sorted(senders)),
            rollout.text(),
        )

    def _verdict(self, pair: GroupPair) -> GroupVerdict:
        found = self._by_group[pair]
        same = pair not in self._differing
        rollout = Rollout()
        for ways in found:
            _add(rollout, pair, ways)
        worst = _worst(found) if same else _BOTH_REFUSED
        text = rollout.text(of_several=True)
        return GroupVerdict(pair.either.name, _receiver(pair) or "", same, *worst, text)


def layout_changed(old: model.Group, new: model.Group) -> Change:
    text = f"the fingerprint of group '{new.name}' changed"
    places = (new.place, old.place)
    return Change(
        LAYOUT_CHANGED, new.name, *places, text, "", "", old.name, counts=True
    )


LAYOUT_CHANGED = ChangeRule(
    "LAYOUT_CHANGED",
    "the fingerprint changed, and no other rule says why",
    "Old and new builds of the group refuse each other's messages.",
    "compare the two versions by eye, and report the case: a rule is missing.",
    finder=layout_changed,
    harmless=ERROR,
)


def _place_in_folder(finding: Finding) -> tuple[str, Place, str, str]:
    """Sort by file name first: a thing that is gone has its place in a folder of the old version."""
    change = finding.change
    name = change.place.path.rpartition("/")[2].rpartition(":")[2]
    return name, change.place, change.rule.id, change.text


def _ways(change: Change) -> _Ways:
    new, old = (OK if takes else BROKEN for takes in change.takes)
    return new, old


def _worst(found: Iterable[_Ways]) -> _Ways:
    """Return the worst of each direction."""
    new_reads_old, old_reads_new = zip((OK, OK), *found)
    order = (OK, REFUSED, BROKEN).index
    return max(new_reads_old, key=order), max(old_reads_new, key=order)


def _receiver(pair: GroupPair) -> str | None:
    """Return who reads a group: a group that lost its messages names nobody any more."""
    return next((each.receiver for each in pair.sides if each.receiver), None)


def _add(rollout: Rollout, pair: GroupPair, ways: _Ways) -> None:
    receiver = _receiver(pair)
    if receiver is not None:
        senders = {each for group in pair.sides for each in group.senders}
        rollout.add(receiver, sorted(senders), *ways)


def _ancestors(node: Node, parents: Mapping[Node, set[Node]]) -> set[Node]:
    """Return the nodes that lead to a node, itself included."""
    seen = {node}
    todo = [node]
    while todo:
        new = parents.get(todo.pop(), set()) - seen
        seen |= new
        todo += new
    return seen


def _message_names(refs: Iterable[model.Type | None]) -> tuple[str, ...]:
    messages = (each for each in refs if isinstance(each, model.MessageType))
    return tuple(sorted(f"{each.group}.{each.name}" for each in messages))

"""Which thing of the old version is which of the new: groups, messages, fields, enum members."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from msgen.codegen.schema import model

from .pairs import wire_name

Named = TypeVar("Named", model.Message, model.Field, model.EnumMember)

_ALIKE = 0.5
"""The share of names that two groups have in common when one is the other renamed."""


@dataclass(frozen=True, eq=False)
class GroupPair:
    """One group in both versions; None where a version does not have it. Equal only to itself."""

    old: model.Group | None
    new: model.Group | None

    @property
    def sides(self) -> tuple[model.Group, ...]:
        """The group in each version that has it, the new one first."""
        return tuple(each for each in (self.new, self.old) if each is not None)

    @property
    def either(self) -> model.Group:
        return self.sides[0]


def pair_groups(old: model.Schema, new: model.Schema) -> list[GroupPair]:
    """Pair groups by name, and what is left by the names inside."""
    pairs = []
    gone = [group for name, group in old.groups.items() if name not in new.groups]
    for name, group in new.groups.items():
        same = old.groups.get(name)
        if same is None:
            best = max(gone, key=lambda each: _likeness(each, group), default=None)
            if best is not None and _likeness(best, group) >= _ALIKE:
                gone.remove(best)
                same = best
        pairs.append(GroupPair(same, group))
    pairs += [GroupPair(group, None) for group in gone]
    return sorted(pairs, key=lambda pair: pair.either.name)


def _likeness(first: model.Group, second: model.Group) -> float:
    names = [
        {("message", wire_name(each)) for each in group.messages}
        | {("struct", each.name) for each in group.structs}
        | {("enum", each.name) for each in group.enums}
        for group in (first, second)
    ]
    together = names[0] | names[1]
    return len(names[0] & names[1]) / len(together) if together else 0.0


class Matched(NamedTuple):
    """The indices of two sequences of one kind of thing, matched by name."""

    pairs: list[tuple[int, int]]
    """In order of the old one."""
    old_left: list[int]
    new_left: list[int]


def match(olds: Sequence[Named], news: Sequence[Named]) -> Matched:
    """Match by the name that the fingerprint knows, then by today's name, then by `was`."""
    pairs: list[tuple[int, int]] = []
    old_left, new_left = (
        dict.fromkeys(range(len(olds))),
        dict.fromkeys(range(len(news))),
    )
    keys: list[tuple[Callable[[Named], str | None], Callable[[Named], str | None]]] = [
        (wire_name, wire_name),
        (lambda each: each.name, lambda each: each.name),
        (lambda each: each.name, lambda each: each.was),
    ]
    for old_key, new_key in keys:
        by_name = {new_key(news[index]): index for index in new_left}
        for index in list(old_left):
            found = by_name.pop(old_key(olds[index]), None)
            if found is not None:
                pairs.append((index, found))
                del old_left[index], new_left[found]
    return Matched(sorted(pairs), list(old_left), list(new_left))


class Alignment(NamedTuple):
    """The fields of a record in both versions, by their slots.

    Attributes:
        kept: pairs of indices of fields that stand where they stood, as far as fields added or
            gone before them allow.
        moved: pairs of indices of fields that changed their order among the others.
        replaced: pairs of indices of fields of different names in one slot.
        gone: indices of old fields.
        added: indices of new fields.
    """

    kept: list[tuple[int, int]]
    moved: list[tuple[int, int]]
    replaced: list[tuple[int, int]]
    gone: list[int]
    added: list[int]


def align_fields(olds: Sequence[model.Field], news: Sequence[model.Field]) -> Alignment:
    """Align fields by name, with as few moves as possible; what is between them by position."""
    matched = match(olds, news)
    kept = _longest_increasing(matched.pairs)
    moved = sorted(set(matched.pairs).difference(kept))
    replaced, gone, added = [], [], []
    before = (-1, -1)
    for end in [*kept, (len(olds), len(news))]:
        old_gap = [i for i in matched.old_left if before[0] < i < end[0]]
        new_gap = [i for i in matched.new_left if before[1] < i < end[1]]
        replaced += list(zip(old_gap, new_gap))
        gone += old_gap[len(new_gap) :]
        added += new_gap[len(old_gap) :]
        before = end
    return Alignment(kept, moved, replaced, gone, added)


def _longest_increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest chain of pairs whose second items rise; the first ones do already."""
    tails: list[int] = []
    chains: list[list[tuple[int, int]]] = []
    for pair in pairs:
        length = bisect_left(tails, pair[1])
        chain = [*(chains[length - 1] if length else []), pair]
        tails[length : length + 1] = [pair[1]]
        chains[length : length + 1] = [chain]
    return chains[-1] if chains else []

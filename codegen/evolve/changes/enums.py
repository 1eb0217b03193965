"""The members of an enum in two versions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgen.codegen.schema import model
from msgen.codegen.schema.rule import NOTE, WARNING

from .change import Change, ChangeRule, find_all
from .pairing import match
from .pairs import (
    SINCE_LOWERED,
    SINCE_RAISED,
    Both,
    renamed,
    since_wrong_version,
    wire_name,
)


def diff_enums(
    old: model.Enum, new: model.Enum, known_version: int | None, is_key: bool
) -> Iterator[Change]:
    """Yield the changes of an enum.

    Args:
        known_version: the version of the old group that declares it, None where it moved.
        is_key: it is the key of a dict, where two unknown numbers would become one key.
    """
    matched = match(old.members, new.members)
    left = [old.members[i] for i in matched.old_left]
    for i, j in matched.pairs:
        both = _both(old, new, old.members[i], new.members[j])
        yield from find_all(_OF_BOTH, both)
    for now in (new.members[j] for j in matched.new_left):
        same = next((each for each in left if each.number == now.number), None)
        if same is None:
            yield from value_added(old, new, now, known_version, is_key)
        else:
            left.remove(same)
            yield from number_renamed(_both(old, new, same, now))
    for before in left:
        yield from value_removed(old, new, before, is_key)
    yield from unknown_changed(
        Both(old, new, _name(old), _name(new), f"enum '{new.name}'")
    )


def _both(
    old: model.Enum, new: model.Enum, before: model.EnumMember, now: model.EnumMember
) -> Both[model.EnumMember]:
    return Both(before, now, _name(old, before), _name(new, now), _what(new, now))


def _name(enum: model.Enum, *members: model.EnumMember) -> str:
    return ".".join((enum.group, enum.name, *(each.name for each in members)))


def _what(enum: model.Enum, member: model.EnumMember) -> str:
    return f"member '{member.name}' of enum '{enum.name}'"


def value_added(
    old: model.Enum,
    new: model.Enum,
    now: model.EnumMember,
    known_version: int | None,
    is_key: bool,
) -> Iterator[Change]:
    both: Both[Any] = Both(old, now, "", _name(new, now), _what(new, now))
    known = old.unknown is not None and not is_key
    reader = "the old enum has no 'unknown'"
    if known:
        reader = f"old readers take {now.number} for '{old.unknown}'"
    elif old.unknown is not None:
        reader = "as keys, unknown numbers become one"
    rule, lack = ENUM_VALUE_ADDED, ""
    if now.since == 1:
        rule, lack = ENUM_VALUE_ADDED_WITHOUT_SINCE, " and has no 'since'"
    effect = {"counts": now.since == 1, "takes": (True, known)}
    yield both.change(
        rule, f"{both.what} is new{lack}; {reader}", "", now.number, **effect
    )
    yield from since_wrong_version(both, known_version)


ENUM_VALUE_ADDED = ChangeRule(
    "ENUM_VALUE_ADDED",
    "an enum has a new member with `since`",
    "Old readers do not know the number. With `unknown` they take it for that member; without, "
    "they refuse every message that holds it. As keys of a dict, two unknown numbers would "
    "become one key.",
    "give the enum `unknown` first, in all builds that read it; or upgrade the receiver first.",
    finder=value_added,
    harmless=NOTE,
    before="enums:\n  Reason:\n    values: {other: 0, stop: 1}\n    unknown: other",
    after="version: 2\nenums:\n  Reason:\n    values: {other: 0, stop: 1, "
    "abort: {value: 2, since: 2}}\n    unknown: other",
)
ENUM_VALUE_ADDED_WITHOUT_SINCE = ChangeRule(
    "ENUM_VALUE_ADDED_WITHOUT_SINCE",
    "a new member of an enum has no `since`",
    "Without `since` it counts as one that was always there. The fingerprint changes, and "
    "builds refuse each other.",
    "raise the group's `version` and give the member that `since`.",
    finder=value_added,
    before="enums:\n  Reason:\n    values: {other: 0, stop: 1}\n    unknown: other",
    after="version: 2\nenums:\n  Reason:\n    values: {other: 0, stop: 1, "
    "abort: {value: 2, since: 2}}\n    unknown: other",
)


def value_removed(
    old: model.Enum, new: model.Enum, before: model.EnumMember, is_key: bool
) -> Iterator[Change]:
    name = _name(old, before)
    both: Both[Any] = Both(before, new, name, name, _what(new, before))
    text = f"{both.what} is gone from the file"
    takes = (new.unknown is not None and not is_key, True)
    effect = {"counts": before.since == 1, "takes": takes, "source": True}
    yield both.change(ENUM_VALUE_REMOVED, text, before.number, "", **effect)


ENUM_VALUE_REMOVED = ChangeRule(
    "ENUM_VALUE_REMOVED",
    "a member of an enum is gone",
    "New readers do not know the number that old writers write. Members of version 1 count in "
    "the fingerprint, so builds refuse each other.",
    "keep the member, and mark it `deprecated: true`.",
    finder=value_removed,
    before="values: {stop: 1, abort: 2}",
    after="values: {stop: 1, abort: {value: 2, deprecated: true}}",
)


def value_renamed(both: Both[model.EnumMember]) -> Iterator[Change]:
    return renamed(both, ENUM_VALUE_RENAMED, ENUM_VALUE_RENAMED_WITHOUT_WAS)


ENUM_VALUE_RENAMED = ChangeRule(
    "ENUM_VALUE_RENAMED",
    "a member of an enum has a new name and says `was`",
    "The fingerprint keeps the old name, so peers see no difference. Code that uses the member "
    "has to use its new name.",
    "this is the way to rename: change the code with it.",
    finder=value_renamed,
    severity=WARNING,
    before="values: {halt: 1}",
    after="values: {stop: {value: 1, was: halt}}",
)


def number_renamed(both: Both[model.EnumMember]) -> Iterator[Change]:
    old, new = both.old.name, both.new.name
    text = f"{both.what} has the number {both.new.number} of '{old}'"
    yield both.counted(ENUM_VALUE_RENAMED_WITHOUT_WAS, text, old, new, source=True)


ENUM_VALUE_RENAMED_WITHOUT_WAS = ChangeRule(
    "ENUM_VALUE_RENAMED_WITHOUT_WAS",
    "a number of an enum has another name in the fingerprint",
    "A new name for a number may be a rename or another meaning. Names of members of version 1 "
    "count in the fingerprint, so that the second is not misread; for later ones nothing "
    "shows it.",
    "say `was:` with the name that the fingerprint knows; for another meaning take another "
    "number.",
    finder=number_renamed,
    before="values: {halt: 1}",
    after="values: {stop: {value: 1, was: halt}}",
    misread=True,
)


def value_renumbered(both: Both[model.EnumMember]) -> Iterator[Change]:
    old, new = both.old.number, both.new.number
    if old != new:
        text = f"{both.what} has the number {new}, had {old}"
        yield both.counted(ENUM_VALUE_RENUMBERED, text, old, new, "value")


ENUM_VALUE_RENUMBERED = ChangeRule(
    "ENUM_VALUE_RENUMBERED",
    "a member of an enum has another number",
    "The number is what is written. Peers read another member, or none.",
    "put the old number back.",
    finder=value_renumbered,
    misread=True,
)


def unknown_changed(both: Both[model.Enum]) -> Iterator[Change]:
    old, new = both.old.unknown, both.new.unknown
    if old is not None and _unknown(both.old) != _unknown(both.new):
        now = "nothing" if new is None else f"'{new}'"
        text = f"'unknown' of {both.what} is {now}, was '{old}'"
        yield both.change(ENUM_UNKNOWN_CHANGED, text, old, new or "none", "unknown")


def _unknown(enum: model.Enum) -> str | None:
    """Return the wire name of the member for unknown numbers."""
    return next(
        (wire_name(each) for each in enum.members if each.name == enum.unknown), None
    )


ENUM_UNKNOWN_CHANGED = ChangeRule(
    "ENUM_UNKNOWN_CHANGED",
    "`unknown` of an enum changed or is gone",
    "Numbers that this build does not know become another member than in older builds, or are "
    "refused. No number of today is hurt, but members that a newer build adds are.",
    "leave `unknown` as it was.",
    finder=unknown_changed,
    severity=WARNING,
)

_OF_BOTH = (ENUM_VALUE_RENUMBERED, ENUM_VALUE_RENAMED, SINCE_LOWERED, SINCE_RAISED)

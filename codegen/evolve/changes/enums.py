"""The members of an enum in two versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from msgen.codegen.schema import model

from .change import Change
from .pairing import match, wire_name
from .records import key_place, since_changes, since_of_addition

_Side: TypeAlias = tuple[model.Enum, model.EnumMember]
_Sides: TypeAlias = tuple[_Side, _Side]


def _by_name(member: model.EnumMember) -> str:
    return member.name


_SHOWN: dict[str, Callable[[model.EnumMember], str]] = {
    "ENUM_VALUE_RENUMBERED": lambda member: str(member.number),
    "SINCE_LOWERED": lambda member: str(member.since),
    "SINCE_RAISED": lambda member: str(member.since),
}
_KEYS = {
    "ENUM_VALUE_RENUMBERED": "value",
    "SINCE_LOWERED": "since",
    "SINCE_RAISED": "since",
    "ENUM_VALUE_RENAMED": "was",
}


def compare_enums(
    old: model.Enum, new: model.Enum, known_version: int | None, is_key: bool
) -> Iterator[Change]:
    """Yield the changes of an enum.

    Args:
        known_version: the version of the old group that declares it, None where it moved.
        is_key: it is the key of a dict, where two unknown numbers would become one key.
    """
    matched = match(old.members, new.members)
    pairs = [(old.members[i], new.members[j]) for i, j in matched.pairs]
    left = [old.members[i] for i in matched.old_left]
    fresh = [new.members[j] for j in matched.new_left]
    renamed = []
    for member in list(left):
        same = next((each for each in fresh if each.number == member.number), None)
        if same is not None:
            left.remove(member)
            fresh.remove(same)
            renamed.append((member, same))
    yield from _kept(old, new, pairs)
    for before, now in renamed:
        yield _member_change(
            "ENUM_VALUE_RENAMED_WITHOUT_WAS",
            f"{_what(new, now)} has the number {now.number} of '{before.name}'",
            (old, before),
            (new, now),
            counts=1 in (before.since, now.since),
            new_takes_old=False,
            old_takes_new=False,
            source=True,
        )
    for now in fresh:
        yield from _added(old, new, now, known_version, is_key)
    for before in left:
        yield _gone(old, new, before, is_key)
    if old.unknown is not None and _unknown(old) != _unknown(new):
        yield Change(
            "ENUM_UNKNOWN_CHANGED",
            f"{new.group}.{new.name}",
            key_place(new, "unknown"),
            key_place(old, "unknown"),
            f"'unknown' of enum '{new.name}' is "
            f"{'nothing' if new.unknown is None else repr(new.unknown)}, was '{old.unknown}'",
            old.unknown,
            new.unknown or "none",
            f"{old.group}.{old.name}",
        )


def _kept(
    old: model.Enum,
    new: model.Enum,
    pairs: list[tuple[model.EnumMember, model.EnumMember]],
) -> Iterator[Change]:
    for before, now in pairs:
        what, sides = _what(new, now), ((old, before), (new, now))
        counts = 1 in (before.since, now.since)
        if before.number != now.number:
            yield _member_change(
                "ENUM_VALUE_RENUMBERED",
                f"{what} has the number {now.number}, had {before.number}",
                *sides,
                counts=counts,
                new_takes_old=False,
                old_takes_new=False,
            )
        if wire_name(before) != wire_name(now):
            yield _member_change(
                "ENUM_VALUE_RENAMED_WITHOUT_WAS",
                f"{what} counts as '{wire_name(now)}' in the fingerprint, which knows it as "
                f"'{wire_name(before)}'",
                *sides,
                counts=counts,
                source=before.name != now.name,
            )
        elif before.name != now.name:
            text = f"{what} was called '{before.name}'"
            yield _member_change("ENUM_VALUE_RENAMED", text, *sides, source=True)

        def make(
            rule: str,
            text: str,
            *_: str,
            counts: bool,
            sides: _Sides = sides,
        ) -> Change:
            return _member_change(rule, text, *sides, counts=counts)

        yield from since_changes(make, what, before, now)


def _added(
    old: model.Enum,
    new: model.Enum,
    now: model.EnumMember,
    known_version: int | None,
    is_key: bool,
) -> Iterator[Change]:
    what, subject = _what(new, now), f"{new.group}.{new.name}.{now.name}"
    known = old.unknown is not None and not is_key
    reader = f"; old readers take {now.number} for '{old.unknown}'" if known else ""
    if not known:
        why = (
            "as keys, unknown numbers become one"
            if old.unknown is not None
            else "the old enum has no 'unknown'"
        )
        reader = f"; {why}"
    without = now.since == 1
    lack = " and has no 'since'" if without else ""
    yield Change(
        "ENUM_VALUE_ADDED_WITHOUT_SINCE" if without else "ENUM_VALUE_ADDED",
        subject,
        now.place,
        old.place,
        f"{what} is new{lack}{reader}",
        "",
        str(now.number),
        counts=without,
        old_takes_new=known,
    )
    yield from since_of_addition(what, subject, now, known_version)


def _gone(
    old: model.Enum, new: model.Enum, before: model.EnumMember, is_key: bool
) -> Change:
    return Change(
        "ENUM_VALUE_REMOVED",
        f"{old.group}.{old.name}.{before.name}",
        new.place,
        before.place,
        f"member '{before.name}' of enum '{new.name}' is gone from the file",
        str(before.number),
        "",
        f"{old.group}.{old.name}.{before.name}",
        counts=before.since == 1,
        new_takes_old=new.unknown is not None and not is_key,
        source=True,
    )


def _member_change(
    rule: str, text: str, old: _Side, new: _Side, **effect: bool
) -> Change:
    before, now = _SHOWN.get(rule, _by_name)(old[1]), _SHOWN.get(rule, _by_name)(new[1])
    return Change(
        rule,
        f"{new[0].group}.{new[0].name}.{new[1].name}",
        key_place(new[1], _KEYS.get(rule, "")),
        key_place(old[1], _KEYS.get(rule, "")),
        text,
        before,
        now,
        f"{old[0].group}.{old[0].name}.{old[1].name}",
        **effect,
    )


def _what(enum: model.Enum, member: model.EnumMember) -> str:
    return f"member '{member.name}' of enum '{enum.name}'"


def _unknown(enum: model.Enum) -> str | None:
    """Return the wire name of the member for unknown numbers."""
    return next(
        (wire_name(each) for each in enum.members if each.name == enum.unknown), None
    )

"""Groups in two versions: names, processes, versions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgen.codegen.schema import model
from msgen.codegen.schema.rule import ERROR, NOTE, WARNING

from .change import Change, ChangeRule, find_all
from .pairing import GroupPair
from .pairs import Both


def diff_group(pair: GroupPair) -> Iterator[Change]:
    """Yield the changes of a group as a whole."""
    if pair.old is None:
        yield from group_added(pair.either)
    elif pair.new is None:
        yield from group_removed(pair.either)
    else:
        what = f"group '{pair.new.name}'"
        both = Both(pair.old, pair.new, pair.old.name, pair.new.name, what)
        yield from find_all(_OF_BOTH, both)


def group_added(new: model.Group) -> Iterator[Change]:
    text = f"group '{new.name}' is new"
    yield Change(GROUP_ADDED, new.name, new.place, None, text, "", new.name)


GROUP_ADDED = ChangeRule(
    "GROUP_ADDED",
    "a group is new",
    "Nobody knows its messages yet, so nobody can misread them.",
    "nothing to do: upgrade the receiver before anybody sends.",
    finder=group_added,
    severity=NOTE,
    harmless=NOTE,
)


def group_removed(old: model.Group) -> Iterator[Change]:
    place, name, text = old.place, old.name, f"group '{old.name}' is gone"
    effect: Any = {"takes": (not old.live_messages, True), "source": True}
    yield Change(GROUP_REMOVED, name, place, place, text, name, "", name, **effect)


GROUP_REMOVED = ChangeRule(
    "GROUP_REMOVED",
    "a group is gone",
    "Senders that are not upgraded yet go on sending its messages, and nobody reads them.",
    "mark its messages `removed: true`, and delete the file when no sender is left.",
    finder=group_removed,
    before="messages:\n  PingMsg: {tag: 1}",
    after="messages:\n  PingMsg: {tag: 1, removed: true}",
)


def group_renamed(both: Both[model.Group]) -> Iterator[Change]:
    old, new = both.old.name, both.new.name
    if old != new:
        text = f"{both.what} was called '{old}'"
        yield both.change(
            GROUP_RENAMED, text, old, new, "group", counts=True, source=True
        )


GROUP_RENAMED = ChangeRule(
    "GROUP_RENAMED",
    "a group has another name",
    "The name of a group is part of its fingerprint, so old and new builds refuse each other. "
    "The name of the module changes with it.",
    "keep the name, and say in `doc:` what the group is for today.",
    finder=group_renamed,
)


def receiver_changed(both: Both[model.Group]) -> Iterator[Change]:
    old, new = both.old.receiver, both.new.receiver
    if old and new and old != new:
        text = f"the receiver of {both.what} is '{new}', was '{old}'"
        yield both.change(RECEIVER_CHANGED, text, old, new, "receiver", deployment=True)


RECEIVER_CHANGED = ChangeRule(
    "RECEIVER_CHANGED",
    "another process receives the messages of a group",
    "The bytes stay readable, but old senders send them to the old receiver, which no longer "
    "handles them.",
    "add a group for the new receiver, move the senders over, and remove the old one.",
    finder=receiver_changed,
    harmless=ERROR,
)


def senders_changed(both: Both[model.Group]) -> Iterator[Change]:
    old, new = both.old.senders, both.new.senders
    if set(old) != set(new):
        text = f"the senders of {both.what} are {_listed(new)}, were {_listed(old)}"
        yield both.change(
            SENDERS_CHANGED, text, ", ".join(old), ", ".join(new), "senders"
        )


def _listed(senders: tuple[str, ...]) -> str:
    return ", ".join(f"'{each}'" for each in senders) or "not named"


SENDERS_CHANGED = ChangeRule(
    "SENDERS_CHANGED",
    "other processes are named as senders of a group",
    "`senders` tells people and roll-out orders who writes; no byte depends on it.",
    "nothing to do; make sure that the receiver is upgraded before a new sender starts.",
    finder=senders_changed,
    severity=NOTE,
    harmless=NOTE,
)


def version_lowered(both: Both[model.Group]) -> Iterator[Change]:
    old, new = both.old.version, both.new.version
    if new < old:
        text = f"{both.what} is version {new}, was {old}"
        yield both.change(VERSION_LOWERED, text, old, new, "version", "group")


VERSION_LOWERED = ChangeRule(
    "VERSION_LOWERED",
    "the version of a group is lower than it was",
    "`since` counts in versions of the group. With a lower one, later additions claim to be "
    "older than they are.",
    "leave `version` as it was, or raise it.",
    finder=version_lowered,
    severity=WARNING,
    before="version: 3",
    after="version: 4",
)

_OF_BOTH = (GROUP_RENAMED, RECEIVER_CHANGED, SENDERS_CHANGED, VERSION_LOWERED)

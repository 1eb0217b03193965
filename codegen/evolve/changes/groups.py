"""Groups in two versions: names, processes, versions."""

from __future__ import annotations

from collections.abc import Iterator

from msgen.codegen.schema import model

from .change import Change
from .pairing import GroupPair
from .records import key_place


def compare_group(pair: GroupPair) -> Iterator[Change]:
    """Yield the changes of a group as a whole."""
    old, new = pair.old, pair.new
    if old is None:
        assert new is not None
        yield Change(
            "GROUP_ADDED",
            new.name,
            new.place,
            None,
            f"group '{new.name}' is new",
            "",
            new.name,
        )
        return
    if new is None:
        yield Change(
            "GROUP_REMOVED",
            old.name,
            old.place,
            old.place,
            f"group '{old.name}' is gone",
            old.name,
            "",
            old.name,
            new_takes_old=not old.live_messages,
            source=True,
        )
        return
    if old.name != new.name:
        yield Change(
            "GROUP_RENAMED",
            new.name,
            key_place(new, "group"),
            key_place(old, "group"),
            f"group '{new.name}' was called '{old.name}'",
            old.name,
            new.name,
            old.name,
            counts=True,
            source=True,
        )
    if old.receiver and new.receiver and old.receiver != new.receiver:
        yield Change(
            "RECEIVER_CHANGED",
            new.name,
            key_place(new, "receiver"),
            key_place(old, "receiver"),
            f"the receiver of group '{new.name}' is '{new.receiver}', was '{old.receiver}'",
            old.receiver,
            new.receiver,
            old.name,
            deployment=True,
        )
    if set(old.senders) != set(new.senders):
        yield Change(
            "SENDERS_CHANGED",
            new.name,
            key_place(new, "senders"),
            key_place(old, "senders"),
            f"the senders of group '{new.name}' are {_listed(new)}, were {_listed(old)}",
            ", ".join(old.senders),
            ", ".join(new.senders),
            old.name,
        )
    if new.version < old.version:
        yield Change(
            "VERSION_LOWERED",
            new.name,
            key_place(new, "version", "group"),
            key_place(old, "version", "group"),
            f"group '{new.name}' is version {new.version}, was {old.version}",
            str(old.version),
            str(new.version),
            old.name,
        )


def _listed(group: model.Group) -> str:
    return ", ".join(f"'{each}'" for each in group.senders) or "not named"

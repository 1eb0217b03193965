"""The messages of a group in two versions: names, tags, and whether they are there at all."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgen.codegen.schema import model
from msgen.codegen.schema.model import spell

from .change import Change, Node
from .pairing import GroupPair, match, wire_name
from .records import key_place, kind_of, since_changes, since_of_addition


@dataclass
class MessagePairs:
    """The messages of a group in both versions.

    Attributes:
        same: one message in two versions, whose fields are compared.
        others: messages that only one version has, or two that only share a tag.
        changes: by node.
    """

    same: list[Node] = field(default_factory=list)
    others: list[Node] = field(default_factory=list)
    changes: list[tuple[Node, Change]] = field(default_factory=list)


def compare_messages(pair: GroupPair) -> MessagePairs:
    """Pair the messages of a group by name, and what is left by tag."""
    olds = pair.old.messages if pair.old else ()
    news = pair.new.messages if pair.new else ()
    found = MessagePairs()
    matched = match(olds, news)
    for i, j in matched.pairs:
        _same_message(olds[i], news[j], found)
    by_tag = {olds[i].tag: olds[i] for i in matched.old_left}
    for j in matched.new_left:
        new = news[j]
        old = by_tag.pop(new.tag, None)
        if old is None:
            _added(new, pair, found)
        elif _alike(old, new):
            _same_message(old, new, found)
        else:
            _reused_tag(old, new, found)
    for old in by_tag.values():
        _gone(old, pair, found)
    return found


def _alike(old: model.Message, new: model.Message) -> bool:
    """Say whether two messages of different names and one tag are one message, renamed."""
    if old.is_batch or new.is_batch:
        return old.is_batch and new.is_batch

    def shape(message: model.Message) -> list[tuple[str, str]]:
        return [(wire_name(each), spell(each.type)) for each in message.fields]

    return not old.removed and not new.removed and shape(old) == shape(new)


def _same_message(old: model.Message, new: model.Message, found: MessagePairs) -> None:
    node = Node(old.type, new.type)
    what, counts = _what(new), 1 in (old.since, new.since)
    changes: list[Change] = []

    def make(
        rule: str, text: str, was: str, now: str, *keys: str, **effect: bool
    ) -> Change:
        return Change(
            rule,
            _subject(new),
            key_place(new, *keys),
            key_place(old, *keys),
            text,
            was,
            now,
            _subject(old),
            **effect,
        )

    if old.is_batch != new.is_batch:
        found.others.append(node)
        text = f"{what} was a {kind_of(old)}"
        change = make(
            "BATCH_CHANGED",
            text,
            kind_of(old),
            kind_of(new),
            counts=counts,
            new_takes_old=False,
            old_takes_new=False,
            source=True,
        )
        found.changes.append((node, change))
        return
    found.same.append(node)
    if wire_name(old) != wire_name(new):
        taken = old.name != new.name and new.was is None
        text = (
            f"{what} has the tag and the fields of '{old.name}'"
            if taken
            else f"{what} counts as '{wire_name(new)}' in the fingerprint, which knows it as "
            f"'{wire_name(old)}'"
        )
        changes.append(
            make(
                "MESSAGE_RENAMED_WITHOUT_WAS",
                text,
                old.name,
                new.name,
                "was",
                counts=counts,
                new_takes_old=not taken,
                old_takes_new=not taken,
                source=old.name != new.name,
            )
        )
    elif old.name != new.name:
        text = f"{what} was called '{old.name}'"
        changes.append(
            make("MESSAGE_RENAMED", text, old.name, new.name, "was", source=True)
        )
    if old.tag != new.tag:
        changes.append(
            make(
                "TAG_CHANGED",
                f"{what} has tag {new.tag}, had {old.tag}",
                str(old.tag),
                str(new.tag),
                "tag",
                counts=counts,
                new_takes_old=old.removed,
                old_takes_new=new.removed,
            )
        )
    changes += since_changes(make, what, old, new)
    if new.removed and not old.removed:
        changes.append(
            make(
                "MESSAGE_REMOVED",
                f"{what} is removed",
                f"tag {old.tag}",
                "removed",
                "removed",
                new_takes_old=False,
                source=True,
            )
        )
    if old.removed and not new.removed:
        changes.append(
            make(
                "MESSAGE_RESTORED",
                f"{what} was removed, and is back",
                "removed",
                f"tag {new.tag}",
                old_takes_new=False,
            )
        )
    found.changes += [(node, change) for change in changes]


def _added(new: model.Message, pair: GroupPair, found: MessagePairs) -> None:
    node, what = Node(None, new.type), _what(new)
    found.others.append(node)
    if pair.old is None:
        return  # the group is told as new
    without = new.since == 1
    lack = " and has no 'since'" if without else f", 'since: {new.since}'"
    change = Change(
        "MESSAGE_ADDED_WITHOUT_SINCE" if without else "MESSAGE_ADDED",
        _subject(new),
        new.place,
        pair.old.place,
        f"{what} is new{lack}",
        "",
        f"tag {new.tag}",
        counts=without,
        old_takes_new=new.removed,
    )
    found.changes.append((node, change))
    same_home = pair.new is not None and pair.old.name == pair.new.name
    version = pair.old.version if same_home else None
    for each in since_of_addition(what, _subject(new), new, version):
        found.changes.append((node, each))


def _reused_tag(old: model.Message, new: model.Message, found: MessagePairs) -> None:
    node = Node(old.type, new.type)
    found.others.append(node)
    removed = "removed " if old.removed else ""
    change = Change(
        "TAG_REUSED",
        _subject(new),
        key_place(new, "tag"),
        key_place(old, "tag"),
        f"{_what(new)} has tag {new.tag}, which is the tag of {removed}{_what(old)}",
        old.name,
        new.name,
        _subject(old),
        counts=1 in (old.since, new.since),
        new_takes_old=old.removed,
        old_takes_new=new.removed,
        source=not old.removed,
    )
    found.changes.append((node, change))


def _gone(old: model.Message, pair: GroupPair, found: MessagePairs) -> None:
    node = Node(old.type, None)
    found.others.append(node)
    if pair.new is None:
        return  # the group is told as gone
    removed = "removed " if old.removed else ""
    change = Change(
        "BATCH_CHANGED" if old.is_batch else "MESSAGE_DELETED",
        _subject(old),
        pair.new.place,
        old.place,
        f"{removed}{_what(old)} is gone from the file",
        f"tag {old.tag}",
        "",
        _subject(old),
        counts=old.since == 1,
        new_takes_old=old.removed,
        source=not old.removed,
    )
    found.changes.append((node, change))


def _subject(message: model.Message) -> str:
    return f"{message.group}.{message.name}"


def _what(message: model.Message) -> str:
    return f"{kind_of(message)} '{message.name}'"

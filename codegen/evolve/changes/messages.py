"""The messages of a group in two versions: names, tags, and whether they are there at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from msgen.codegen.schema import model
from msgen.codegen.schema.model import spell
from msgen.codegen.schema.rule import ERROR, NOTE, WARNING

from .change import Change, ChangeRule, Node, find_all
from .pairing import GroupPair, match
from .pairs import (
    SINCE_LOWERED,
    SINCE_RAISED,
    Both,
    kind_of,
    renamed,
    since_wrong_version,
    wire_name,
)


@dataclass(frozen=True)
class MessagePair:
    """A message of a group in one version or both, and what changed about it as a whole.

    Attributes:
        is_same: one message in two versions, whose fields are compared; not two that only share a
            tag.
    """

    node: Node
    changes: tuple[Change, ...]
    is_same: bool = False


def diff_messages(pair: GroupPair) -> Iterator[MessagePair]:
    """Pair the messages of a group by name, and what is left by tag."""
    olds = pair.old.messages if pair.old else ()
    news = pair.new.messages if pair.new else ()
    matched = match(olds, news)
    paired = [(olds[i], news[j]) for i, j in matched.pairs]
    by_tag = {olds[i].tag: olds[i] for i in matched.old_left}
    for new in (news[j] for j in matched.new_left):
        old = by_tag.pop(new.tag, None)
        if old is None:
            changes = tuple(message_added(new, pair.old, pair.new))
            yield MessagePair(Node(None, new.type), changes)
        elif _alike(old, new):
            paired.append((old, new))
        else:
            changes = tuple(tag_reused(_both(old, new)))
            yield MessagePair(Node(old.type, new.type), changes)
    for old in by_tag.values():
        yield MessagePair(Node(old.type, None), tuple(message_deleted(old, pair.new)))
    for old, new in paired:
        node, both = Node(old.type, new.type), _both(old, new)
        if old.is_batch != new.is_batch:
            yield MessagePair(node, tuple(batch_changed(both)))
        else:
            yield MessagePair(node, tuple(find_all(_OF_BOTH, both)), is_same=True)


def _both(old: model.Message, new: model.Message) -> Both[model.Message]:
    return Both(old, new, _subject(old), _subject(new), _what(new))


def _subject(message: model.Message) -> str:
    return f"{message.group}.{message.name}"


def _what(message: model.Message) -> str:
    return f"{kind_of(message)} '{message.name}'"


def _alike(old: model.Message, new: model.Message) -> bool:
    """Say whether two messages of different names and one tag are one message, renamed."""
    if old.is_batch or new.is_batch:
        return old.is_batch and new.is_batch

    def shape(message: model.Message) -> list[tuple[str, str]]:
        return [(wire_name(each), spell(each.type)) for each in message.fields]

    return not old.removed and not new.removed and shape(old) == shape(new)


def message_added(
    new: model.Message, old_group: model.Group | None, group: model.Group | None
) -> Iterator[Change]:
    if old_group is None:
        return  # the group is told as new
    both: Both[Any] = Both(old_group, new, "", _subject(new), _what(new))
    rule, lack = MESSAGE_ADDED, f", 'since: {new.since}'"
    if new.since == 1:
        rule, lack = MESSAGE_ADDED_WITHOUT_SINCE, " and has no 'since'"
    effect = {"counts": new.since == 1, "takes": (True, new.removed)}
    yield both.change(rule, f"{both.what} is new{lack}", "", f"tag {new.tag}", **effect)
    same_home = group is not None and old_group.name == group.name
    yield from since_wrong_version(both, old_group.version if same_home else None)


MESSAGE_ADDED = ChangeRule(
    "MESSAGE_ADDED",
    "a message is new",
    "Readers that are not upgraded raise UnknownMessage for it, and DecodeError for a batch "
    "or a union that holds it. All other messages go on working.",
    "nothing to do but the order: upgrade the receiver, then the senders.",
    finder=message_added,
    severity=NOTE,
    harmless=NOTE,
    before="version: 1\nmessages:\n  UserMsg: {tag: 1}",
    after="version: 2\nmessages:\n  UserMsg: {tag: 1}\n  FlushMsg: {tag: 2, since: 2}",
)
MESSAGE_ADDED_WITHOUT_SINCE = ChangeRule(
    "MESSAGE_ADDED_WITHOUT_SINCE",
    "a new message has no `since`, so it changes the fingerprint",
    "Without `since` a message counts as one that was always there. The fingerprint changes, "
    "and old and new builds refuse all messages of the group.",
    "raise the group's `version` and give the message that `since`.",
    finder=message_added,
    before="messages:\n  UserMsg: {tag: 1}",
    after="version: 2\nmessages:\n  UserMsg: {tag: 1}\n  FlushMsg: {tag: 2, since: 2}",
)


def message_removed(both: Both[model.Message]) -> Iterator[Change]:
    if both.new.removed and not both.old.removed:
        values = (f"tag {both.old.tag}", "removed")
        effect = {"takes": (False, True), "source": True}
        text = f"{both.what} is removed"
        yield both.change(MESSAGE_REMOVED, text, *values, "removed", **effect)


MESSAGE_REMOVED = ChangeRule(
    "MESSAGE_REMOVED",
    "a message is marked `removed: true`",
    "New readers raise UnknownMessage where an old sender still sends it, and DecodeError for "
    "a batch that holds it. Its tag stays taken and the fingerprint stays the same.",
    "this is the way to remove a message: upgrade the senders first, so that nobody sends it "
    "any more, then the receiver.",
    finder=message_removed,
    severity=WARNING,
    before="messages:\n  PingMsg: {tag: 2}",
    after="messages:\n  PingMsg: {tag: 2, removed: true}",
)


def message_deleted(old: model.Message, group: model.Group | None) -> Iterator[Change]:
    if group is None:
        return  # the group is told as gone
    both: Both[Any] = Both(old, group, _subject(old), _subject(old), _what(old))
    rule = BATCH_CHANGED if old.is_batch else MESSAGE_DELETED
    text = f"{'removed ' if old.removed else ''}{both.what} is gone from the file"
    effect = {"takes": (old.removed, True), "source": not old.removed}
    yield both.change(rule, text, f"tag {old.tag}", "", counts=old.since == 1, **effect)


MESSAGE_DELETED = ChangeRule(
    "MESSAGE_DELETED",
    "a message is gone from the file",
    "With its lines the message leaves the fingerprint, so builds refuse each other. A message "
    "that was added later leaves no trace in the fingerprint: then its tag is free to be "
    "taken by another, which old builds would read as the old one.",
    "keep its lines and mark it `removed: true`.",
    finder=message_deleted,
    before="messages:\n  PingMsg: {tag: 2}",
    after="messages:\n  PingMsg: {tag: 2, removed: true}",
)


def message_restored(both: Both[model.Message]) -> Iterator[Change]:
    if both.old.removed and not both.new.removed:
        values = ("removed", f"tag {both.new.tag}")
        text = f"{both.what} was removed, and is back"
        yield both.change(MESSAGE_RESTORED, text, *values, takes=(True, False))


MESSAGE_RESTORED = ChangeRule(
    "MESSAGE_RESTORED",
    "a message is no longer marked `removed`",
    "Readers built in between do not know it and raise UnknownMessage.",
    "add a message with a tag of its own, or upgrade the receiver first.",
    finder=message_restored,
    severity=WARNING,
)


def message_renamed(both: Both[model.Message]) -> Iterator[Change]:
    old, new = both.old, both.new
    rule = MESSAGE_RENAMED_WITHOUT_WAS
    if old.name != new.name != wire_name(old) and new.was is None:
        text = f"{both.what} has the tag and the fields of '{old.name}'"
        yield both.counted(rule, text, old.name, new.name, "was", source=True)
    else:
        yield from renamed(both, MESSAGE_RENAMED, rule, "was")


MESSAGE_RENAMED = ChangeRule(
    "MESSAGE_RENAMED",
    "a message has a new name and says `was`",
    "The fingerprint keeps the old name, so peers see no difference. Code that uses the class "
    "has to use its new name.",
    "this is the way to rename: change the code with it.",
    finder=message_renamed,
    severity=WARNING,
    before="messages:\n  Job: {tag: 1}",
    after="messages:\n  Task: {tag: 1, was: Job}",
)
MESSAGE_RENAMED_WITHOUT_WAS = ChangeRule(
    "MESSAGE_RENAMED_WITHOUT_WAS",
    "a message has another name in the fingerprint",
    "Names of messages count in the fingerprint, so that two messages which swap their tags "
    "are not taken for each other. A rename changes it, and builds refuse each other.",
    "say `was:` with the name at version 1, and leave it so at later renames.",
    finder=message_renamed,
    before="messages:\n  Job: {tag: 1}",
    after="messages:\n  Task: {tag: 1, was: Job}",
    misread=True,
)


def tag_changed(both: Both[model.Message]) -> Iterator[Change]:
    old, new = both.old, both.new
    if old.tag != new.tag:
        text = f"{both.what} has tag {new.tag}, had {old.tag}"
        takes = (old.removed, new.removed)
        yield both.counted(TAG_CHANGED, text, old.tag, new.tag, "tag", takes=takes)


TAG_CHANGED = ChangeRule(
    "TAG_CHANGED",
    "a message has another tag",
    "The tag is how a reader finds the message. A message that was added later leaves no trace "
    "in the fingerprint, so its old tag is unknown to new readers or leads to another message.",
    "put the old tag back; to free a number, mark the message `removed: true` and add another.",
    finder=tag_changed,
    before="messages:\n  FlushMsg: {tag: 3}",
    after="messages:\n  FlushMsg: {tag: 3}",
    misread=True,
)


def tag_reused(both: Both[model.Message]) -> Iterator[Change]:
    old, new = both.old, both.new
    removed = "removed " if old.removed else ""
    text = f"{both.what} has tag {new.tag}, which is the tag of {removed}{_what(old)}"
    takes, source = (old.removed, new.removed), not old.removed
    yield both.counted(
        TAG_REUSED, text, old.name, new.name, "tag", takes=takes, source=source
    )


TAG_REUSED = ChangeRule(
    "TAG_REUSED",
    "a message has the tag of one that is gone",
    "Old builds read the new message as the old one where the fingerprint does not show the "
    "difference, which is so for messages that were added later, and refuse everything where "
    "it does.",
    "keep the old message as `removed: true` and take a tag that was never used.",
    finder=tag_reused,
    harmless=ERROR,
    before="messages:\n  PingMsg: {tag: 2}",
    after="version: 2\nmessages:\n  PingMsg: {tag: 2, removed: true}\n"
    "  FlushMsg: {tag: 3, since: 2}",
    misread=True,
)


def batch_changed(both: Both[model.Message]) -> Iterator[Change]:
    before, now = kind_of(both.old), kind_of(both.new)
    text = f"{both.what} was a {before}"
    yield both.counted(BATCH_CHANGED, text, before, now, source=True)


BATCH_CHANGED = ChangeRule(
    "BATCH_CHANGED",
    "the batch is gone, or is a plain message now, or the other way round",
    "A batch is a message with one field, the list of others. Readers that do not have it "
    "raise UnknownMessage, or read its list as fields.",
    "keep the batch; discourage it with `deprecated: true`.",
    finder=batch_changed,
    before="batch: {name: BatchMsg, tag: 0}",
    after="batch: {name: BatchMsg, tag: 0, deprecated: true}",
    misread=True,
)

_OF_BOTH = (
    MESSAGE_RENAMED,
    MESSAGE_RENAMED_WITHOUT_WAS,
    TAG_CHANGED,
    SINCE_LOWERED,
    SINCE_RAISED,
    MESSAGE_REMOVED,
    MESSAGE_RESTORED,
)

"""Rules about groups and messages."""

from __future__ import annotations

from msgen.codegen.evolve.changes.change import ERROR, NOTE, WARNING

from .rule import Rule

MESSAGE_RULES = (
    Rule(
        "GROUP_ADDED",
        "a group is new",
        NOTE,
        NOTE,
        "Nobody knows its messages yet, so nobody can misread them.",
        "nothing to do: upgrade the receiver before anybody sends.",
    ),
    Rule(
        "GROUP_REMOVED",
        "a group is gone",
        ERROR,
        WARNING,
        "Senders that are not upgraded yet go on sending its messages, and nobody reads them.",
        "mark its messages `removed: true`, and delete the file when no sender is left.",
        "messages:\n  PingMsg: {tag: 1}",
        "messages:\n  PingMsg: {tag: 1, removed: true}",
    ),
    Rule(
        "GROUP_RENAMED",
        "a group has another name",
        ERROR,
        WARNING,
        "The name of a group is part of its fingerprint, so old and new builds refuse each other. "
        "The name of the module changes with it.",
        "keep the name, and say in `doc:` what the group is for today.",
    ),
    Rule(
        "RECEIVER_CHANGED",
        "another process receives the messages of a group",
        ERROR,
        ERROR,
        "The bytes stay readable, but old senders send them to the old receiver, which no longer "
        "handles them.",
        "add a group for the new receiver, move the senders over, and remove the old one.",
    ),
    Rule(
        "SENDERS_CHANGED",
        "other processes are named as senders of a group",
        NOTE,
        NOTE,
        "`senders` tells people and roll-out orders who writes; no byte depends on it.",
        "nothing to do; make sure that the receiver is upgraded before a new sender starts.",
    ),
    Rule(
        "VERSION_LOWERED",
        "the version of a group is lower than it was",
        WARNING,
        WARNING,
        "`since` counts in versions of the group. With a lower one, later additions claim to be "
        "older than they are.",
        "leave `version` as it was, or raise it.",
        "version: 3",
        "version: 4",
    ),
    Rule(
        "MESSAGE_ADDED",
        "a message is new",
        NOTE,
        NOTE,
        "Readers that are not upgraded raise UnknownMessage for it, and DecodeError for a batch "
        "or a union that holds it. All other messages go on working.",
        "nothing to do but the order: upgrade the receiver, then the senders.",
        "version: 1\nmessages:\n  UserMsg: {tag: 1}",
        "version: 2\nmessages:\n  UserMsg: {tag: 1}\n  FlushMsg: {tag: 2, since: 2}",
    ),
    Rule(
        "MESSAGE_ADDED_WITHOUT_SINCE",
        "a new message has no `since`, so it changes the fingerprint",
        ERROR,
        WARNING,
        "Without `since` a message counts as one that was always there. The fingerprint changes, "
        "and old and new builds refuse all messages of the group.",
        "raise the group's `version` and give the message that `since`.",
        "messages:\n  UserMsg: {tag: 1}",
        "version: 2\nmessages:\n  UserMsg: {tag: 1}\n  FlushMsg: {tag: 2, since: 2}",
    ),
    Rule(
        "MESSAGE_REMOVED",
        "a message is marked `removed: true`",
        WARNING,
        WARNING,
        "New readers raise UnknownMessage where an old sender still sends it, and DecodeError for "
        "a batch that holds it. Its tag stays taken and the fingerprint stays the same.",
        "this is the way to remove a message: upgrade the senders first, so that nobody sends it "
        "any more, then the receiver.",
        "messages:\n  PingMsg: {tag: 2}",
        "messages:\n  PingMsg: {tag: 2, removed: true}",
    ),
    Rule(
        "MESSAGE_DELETED",
        "a message is gone from the file",
        ERROR,
        WARNING,
        "With its lines the message leaves the fingerprint, so builds refuse each other. A message "
        "that was added later leaves no trace in the fingerprint: then its tag is free to be "
        "taken by another, which old builds would read as the old one.",
        "keep its lines and mark it `removed: true`.",
        "messages:\n  PingMsg: {tag: 2}",
        "messages:\n  PingMsg: {tag: 2, removed: true}",
    ),
    Rule(
        "MESSAGE_RESTORED",
        "a message is no longer marked `removed`",
        WARNING,
        WARNING,
        "Readers built in between do not know it and raise UnknownMessage.",
        "add a message with a tag of its own, or upgrade the receiver first.",
    ),
    Rule(
        "MESSAGE_RENAMED",
        "a message has a new name and says `was`",
        WARNING,
        WARNING,
        "The fingerprint keeps the old name, so peers see no difference. Code that uses the class "
        "has to use its new name.",
        "this is the way to rename: change the code with it.",
        "messages:\n  Job: {tag: 1}",
        "messages:\n  Task: {tag: 1, was: Job}",
    ),
    Rule(
        "MESSAGE_RENAMED_WITHOUT_WAS",
        "a message has another name in the fingerprint",
        ERROR,
        WARNING,
        "Names of messages count in the fingerprint, so that two messages which swap their tags "
        "are not taken for each other. A rename changes it, and builds refuse each other.",
        "say `was:` with the name at version 1, and leave it so at later renames.",
        "messages:\n  Job: {tag: 1}",
        "messages:\n  Task: {tag: 1, was: Job}",
        misread=True,
    ),
    Rule(
        "TAG_CHANGED",
        "a message has another tag",
        ERROR,
        WARNING,
        "The tag is how a reader finds the message. A message that was added later leaves no trace "
        "in the fingerprint, so its old tag is unknown to new readers or leads to another message.",
        "put the old tag back; to free a number, mark the message `removed: true` and add another.",
        "messages:\n  FlushMsg: {tag: 3}",
        "messages:\n  FlushMsg: {tag: 3}",
        misread=True,
    ),
    Rule(
        "TAG_REUSED",
        "a message has the tag of one that is gone",
        ERROR,
        ERROR,
        "Old builds read the new message as the old one where the fingerprint does not show the "
        "difference, which is so for messages that were added later, and refuse everything where "
        "it does.",
        "keep the old message as `removed: true` and take a tag that was never used.",
        "messages:\n  PingMsg: {tag: 2}",
        "version: 2\nmessages:\n  PingMsg: {tag: 2, removed: true}\n"
        "  FlushMsg: {tag: 3, since: 2}",
        misread=True,
    ),
    Rule(
        "BATCH_CHANGED",
        "the batch is gone, or is a plain message now, or the other way round",
        ERROR,
        WARNING,
        "A batch is a message with one field, the list of others. Readers that do not have it "
        "raise UnknownMessage, or read its list as fields.",
        "keep the batch; discourage it with `deprecated: true`.",
        "batch: {name: BatchMsg, tag: 0}",
        "batch: {name: BatchMsg, tag: 0, deprecated: true}",
        misread=True,
    ),
    Rule(
        "LAYOUT_CHANGED",
        "the fingerprint changed, and no other rule says why",
        ERROR,
        ERROR,
        "Old and new builds of the group refuse each other's messages.",
        "compare the two versions by eye, and report the case: a rule is missing.",
    ),
)

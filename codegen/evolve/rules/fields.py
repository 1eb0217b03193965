"""Rules about the fields of messages and structs: which slot holds what, since when."""

from __future__ import annotations

from msgen.codegen.evolve.changes.change import ERROR, NOTE, WARNING

from .rule import Rule

FIELD_RULES = (
    Rule(
        "FIELD_ADDED",
        "a field is new, at the end, with `since` and a default",
        NOTE,
        NOTE,
        "Old readers ignore the slot, new readers of old messages take the default.",
        "nothing to do: this is the way to add a field.",
        "version: 1\nfields:\n  uid: int",
        "version: 2\nfields:\n  uid: int\n  priority: {type: int, default: 0, since: 2}",
    ),
    Rule(
        "FIELD_ADDED_WITHOUT_SINCE",
        "a new field has no `since`, so it counts as one that was always there",
        ERROR,
        WARNING,
        "The fingerprint changes and builds refuse each other. Where the fingerprint does not see "
        "the field, as in a struct that only later fields hold, new readers miss the slot in old "
        "messages.",
        "raise the group's `version`, and give the field that `since` and a default.",
        "fields:\n  uid: int",
        "version: 2\nfields:\n  uid: int\n  priority: {type: int, default: 0, since: 2}",
    ),
    Rule(
        "FIELD_INSERTED",
        "a new field stands before others",
        ERROR,
        WARNING,
        "A field's place is its slot. All fields behind it move by one, and where the fingerprint "
        "does not count them, peers read one for the other.",
        "move it to the end, with `since` and a default.",
        "fields:\n  uid: int",
        "version: 2\nfields:\n  uid: int\n  urgent: {type: bool, default: false, since: 2}",
        misread=True,
    ),
    Rule(
        "FIELD_MOVED",
        "fields changed their order",
        ERROR,
        WARNING,
        "A field's place is its slot. Two fields of one type that change places would be read one "
        "for the other; the fingerprint sees it for fields of version 1 only.",
        "put them back in their order.",
        misread=True,
    ),
    Rule(
        "FIELD_REMOVED",
        "a field is marked `removed: true`",
        ERROR,
        WARNING,
        "The slot is written as nil. Readers that still have the field take nil for its default, "
        "or for None; where it has no default and is not nullable they refuse every message.",
        "give the field a default first, in all builds that read it; then remove it. Or upgrade "
        "the receiver first.",
        "fields:\n  best_of: {type: int, default: 1}",
        "fields:\n  best_of: {type: int, default: 1, removed: true}",
    ),
    Rule(
        "FIELD_DELETED",
        "a field is gone from the file",
        ERROR,
        WARNING,
        "The slots behind it move by one. Where it was the last, its slot is free to be taken by "
        "another field, which old builds would read as the old one.",
        "keep its line and mark it `removed: true`.",
        "fields:\n  uid: int\n  best_of: {type: int, default: 1}",
        "fields:\n  uid: int\n  best_of: {type: int, default: 1, removed: true}",
        misread=True,
    ),
    Rule(
        "FIELD_RESTORED",
        "a field is no longer marked `removed`",
        ERROR,
        WARNING,
        "Builds in between write nil in its slot, which a reader takes for the default, or for "
        "None; without either it refuses the message.",
        "give it a default, or add a field of another name at the end.",
    ),
    Rule(
        "FIELD_RENAMED",
        "a field has a new name and says `was`",
        WARNING,
        WARNING,
        "The fingerprint keeps the old name, so peers see no difference. Code that uses the field "
        "has to use its new name.",
        "this is the way to rename: change the code with it.",
        "fields:\n  text: str",
        "fields:\n  prompt: {type: str, was: text}",
    ),
    Rule(
        "FIELD_RENAMED_WITHOUT_WAS",
        "a field has another name in the fingerprint, or may be another field in its slot",
        ERROR,
        WARNING,
        "A new name in a slot may be a rename or another meaning. Names of fields of version 1 "
        "count in the fingerprint, so that the second is not misread; for later fields nothing "
        "shows it.",
        "say `was:` with the name that the fingerprint knows, and leave it so at later renames.",
        "fields:\n  text: str",
        "fields:\n  prompt: {type: str, was: text}",
        misread=True,
    ),
    Rule(
        "SLOT_REUSED",
        "another field stands in the slot of one that is gone or removed",
        ERROR,
        ERROR,
        "Peers read the one for the other, or refuse what does not fit. This also holds for the "
        "slot of a removed field, which older builds still write.",
        "keep the old field as `removed: true` and add the new one at the end.",
        "fields:\n  uid: int\n  text: {type: str, default: ''}",
        "version: 2\nfields:\n  uid: int\n  text: {type: str, default: '', removed: true}\n"
        "  tokens: {type: 'list[int]', default: [], since: 2}",
        misread=True,
    ),
    Rule(
        "REMOVED_SLOT_CHANGED",
        "the type of a removed field changed",
        ERROR,
        NOTE,
        "A removed field stays in the fingerprint as it was; its type is the only record of what "
        "older builds write there.",
        "put the old type back.",
    ),
    Rule(
        "SINCE_LOWERED",
        "`since` is lower than it was",
        ERROR,
        WARNING,
        "`since` says which builds lack a thing. At 1 it enters the fingerprint, and a reader no "
        "longer fills it in for older writers.",
        "put the old `since` back.",
    ),
    Rule(
        "SINCE_RAISED",
        "`since` is higher than it was",
        ERROR,
        WARNING,
        "Builds of the version it had before do have the thing. What was of version 1 leaves the "
        "fingerprint.",
        "put the old `since` back.",
    ),
    Rule(
        "SINCE_WRONG_VERSION",
        "something new claims a version that was there without it",
        WARNING,
        WARNING,
        "Peers are not hurt, since readers fill in what is missing. But `since` no longer says "
        "which builds have it, and `build --at-version` makes a module that never was.",
        "raise the group's `version`, and set `since` to it.",
        "version: 2\nfields:\n  uid: int",
        "version: 3\nfields:\n  uid: int\n  priority: {type: int, default: 0, since: 3}",
    ),
    Rule(
        "DEFAULT_CHANGED",
        "a field has another default",
        WARNING,
        WARNING,
        "Defaults are filled in where they are used. Callers that leave the field out send "
        "another value, and messages of writers that lack the field are read with another value, "
        "so old and new readers see one message differently.",
        "keep the default that older writers mean, and set the new value in the callers.",
    ),
    Rule(
        "DEFAULT_REMOVED",
        "a field has no default any more",
        WARNING,
        WARNING,
        "Callers have to give the field. And it can no longer be removed without breaking those "
        "who read it.",
        "keep the default.",
    ),
)

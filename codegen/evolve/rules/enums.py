"""Rules about enums, and about waivers."""

from __future__ import annotations

from msgen.codegen.evolve.changes.change import ERROR, NOTE, WARNING

from .rule import Rule

ENUM_RULES = (
    Rule(
        "ENUM_ADDED",
        "an enum is new",
        NOTE,
        NOTE,
        "By itself it is on no wire.",
        "nothing to do.",
    ),
    Rule(
        "ENUM_REMOVED",
        "an enum is gone",
        WARNING,
        WARNING,
        "Code that uses the class fails. Fields that held it are told by rules of their own.",
        "remove its uses in code with it.",
    ),
    Rule(
        "ENUM_RENAMED",
        "an enum has another name",
        WARNING,
        WARNING,
        "Enums count by content, so no peer sees the name. Code that uses the class has to use "
        "its new name.",
        "change the code with it.",
    ),
    Rule(
        "ENUM_VALUE_ADDED",
        "an enum has a new member with `since`",
        ERROR,
        NOTE,
        "Old readers do not know the number. With `unknown` they take it for that member; without, "
        "they refuse every message that holds it. As keys of a dict, two unknown numbers would "
        "become one key.",
        "give the enum `unknown` first, in all builds that read it; or upgrade the receiver first.",
        "enums:\n  Reason:\n    values: {other: 0, stop: 1}\n    unknown: other",
        "version: 2\nenums:\n  Reason:\n    values: {other: 0, stop: 1, "
        "abort: {value: 2, since: 2}}\n    unknown: other",
    ),
    Rule(
        "ENUM_VALUE_ADDED_WITHOUT_SINCE",
        "a new member of an enum has no `since`",
        ERROR,
        WARNING,
        "Without `since` it counts as one that was always there. The fingerprint changes, and "
        "builds refuse each other.",
        "raise the group's `version` and give the member that `since`.",
        "enums:\n  Reason:\n    values: {other: 0, stop: 1}\n    unknown: other",
        "version: 2\nenums:\n  Reason:\n    values: {other: 0, stop: 1, "
        "abort: {value: 2, since: 2}}\n    unknown: other",
    ),
    Rule(
        "ENUM_VALUE_REMOVED",
        "a member of an enum is gone",
        ERROR,
        WARNING,
        "New readers do not know the number that old writers write. Members of version 1 count in "
        "the fingerprint, so builds refuse each other.",
        "keep the member, and mark it `deprecated: true`.",
        "values: {stop: 1, abort: 2}",
        "values: {stop: 1, abort: {value: 2, deprecated: true}}",
    ),
    Rule(
        "ENUM_VALUE_RENAMED",
        "a member of an enum has a new name and says `was`",
        WARNING,
        WARNING,
        "The fingerprint keeps the old name, so peers see no difference. Code that uses the member "
        "has to use its new name.",
        "this is the way to rename: change the code with it.",
        "values: {halt: 1}",
        "values: {stop: {value: 1, was: halt}}",
    ),
    Rule(
        "ENUM_VALUE_RENAMED_WITHOUT_WAS",
        "a number of an enum has another name in the fingerprint",
        ERROR,
        WARNING,
        "A new name for a number may be a rename or another meaning. Names of members of version 1 "
        "count in the fingerprint, so that the second is not misread; for later ones nothing "
        "shows it.",
        "say `was:` with the name that the fingerprint knows; for another meaning take another "
        "number.",
        "values: {halt: 1}",
        "values: {stop: {value: 1, was: halt}}",
        misread=True,
    ),
    Rule(
        "ENUM_VALUE_RENUMBERED",
        "a member of an enum has another number",
        ERROR,
        WARNING,
        "The number is what is written. Peers read another member, or none.",
        "put the old number back.",
        misread=True,
    ),
    Rule(
        "ENUM_UNKNOWN_CHANGED",
        "`unknown` of an enum changed or is gone",
        WARNING,
        WARNING,
        "Numbers that this build does not know become another member than in older builds, or are "
        "refused. No number of today is hurt, but members that a newer build adds are.",
        "leave `unknown` as it was.",
    ),
    Rule(
        "WAIVER_EXPIRED",
        "a waiver's date is past",
        ERROR,
        ERROR,
        "A waiver says until when a break is known and wanted. After that day the finding counts "
        "again.",
        "remove the waiver, or agree on another day.",
        "waivers:\n  - rule: INT_CHANGED\n    place: backend.UserMsg.uid\n"
        "    reason: All processes restart together.\n    until: 2030-01-31",
    ),
    Rule(
        "WAIVER_UNUSED",
        "a waiver fits no finding",
        WARNING,
        WARNING,
        "What it allowed is not there, or no longer. Left in the file, it would allow the next such "
        "break, which nobody decided on.",
        "remove the waiver.",
    ),
)

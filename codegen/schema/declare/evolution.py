"""The keys of evolution: `since` against the group's version, `was` against the names of today."""

from __future__ import annotations

from typing import NamedTuple

from msgen.codegen.schema import names
from msgen.codegen.schema.errors import Problems
from msgen.codegen.schema.rule import Rule
from msgen.codegen.schema.sections import Section
from msgen.codegen.schema.texts import shown


class Declared(NamedTuple):
    """Something that may have evolution keys: its name, and how errors call it."""

    name: str
    what: str
    section: Section


def check_evolution(
    group: Section, kind: str, declared: list[Declared], problems: Problems
) -> None:
    """Check the messages of a group, the fields of a record or the members of an enum."""
    for each in declared:
        _check_since(group, each, problems)
    _check_old_names(kind, declared, problems)


def _check_since(group: Section, declared: Declared, problems: Problems) -> None:
    version = group.count("version")
    since = declared.section.count("since")
    if since > version and not group.incomplete("version"):
        remedy = (
            "raise the group's 'version'"
            if "version" in group
            else f"set 'version: {since}' in the group"
        )
        problems.add(
            declared.section.place_of("since"),
            SINCE_VERSION,
            f"{declared.what} has 'since: {since}', above the group's version {version}; "
            f"{remedy}",
        )


def _check_old_names(kind: str, declared: list[Declared], problems: Problems) -> None:
    current = {each.name for each in declared}
    old: dict[str, str] = {}
    for each in declared:
        was = each.section.optional_text("was")
        if was is None:
            continue
        place = each.section.place_of("was")
        if was == each.name:
            clash = "its own name; remove it"
        elif was in current:
            clash = f"the name of another {kind}; 'was' is the name before a rename"
        elif was in old:
            clash = f"the old name of {shown(old[was])} too; keep one of them"
        else:
            old[was] = each.name
            names.check_old_name(was, kind, each.what, place, problems)
            continue
        problems.add(
            place, WAS_CLASH, f"{each.what} has 'was: {was}', which is {clash}"
        )


def check_appended(fields: list[Declared], problems: Problems) -> None:
    """Check that later fields stand at the end, with a default for older writers."""
    before: Declared | None = None
    for field in fields:
        section = field.section
        if section.incomplete("since"):
            continue
        since = section.count("since")
        has_default = "default" in section or section.incomplete("default")
        if since > 1 and not has_default:
            problems.add(
                section.place_of("since"),
                SINCE_DEFAULT,
                f"{field.what} has 'since: {since}' but no default, so a reader cannot fill it "
                "in for an older writer; add 'default:'",
            )
        if before and since < before.section.count("since"):
            problems.add(
                section.place,
                SINCE_ORDER,
                f"{field.what} is of version {since} but stands after '{before.name}' of "
                f"version {before.section.count('since')}; added fields go to the end: move "
                "it or raise its 'since'",
            )
        before = field


SINCE_VERSION = Rule(
    "since-version",
    "something was added in a version that the group has not reached",
    "`since` is the first version that knows a thing, and the group's version is the latest.",
    "raise the group's `version`, or lower `since`.",
    _check_since,
)
WAS_CLASH = Rule(
    "was-clash",
    "`was` gives an old name that is still in use, or that another thing gives too",
    "An old name counts in the fingerprint in place of the new one; two things with one name there "
    "would be taken for each other.",
    "write the name that the thing had before it was renamed, or remove `was`.",
    _check_old_names,
)
SINCE_DEFAULT = Rule(
    "since-default",
    "a field was added later but has no default",
    "Older writers do not send it, and a reader has nothing to put in its place.",
    "add `default:`, or leave `since` out if no build without the field is running.",
    check_appended,
)
SINCE_ORDER = Rule(
    "since-order",
    "a field stands after one that was added later",
    "A field's position in the file is its position on the wire: old readers would read the value "
    "of another field at the positions after it.",
    "move added fields to the end, in the order of their `since`.",
    check_appended,
)

"""The keys of evolution: `since` against the group's version, `was` against the names of today."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from msgen.codegen.schema import names
from msgen.codegen.schema.errors import Problems
from msgen.codegen.schema.sections.section import Section
from msgen.codegen.schema.texts import shown


class Declared(NamedTuple):
    """Something that may have evolution keys: its name, and how errors call it."""

    name: str
    what: str
    section: Section


@dataclass(frozen=True)
class EvolutionChecker:
    """Checks the evolution keys of one group."""

    group: Section
    problems: Problems

    def check(self, kind: str, all_declared: Iterable[Declared]) -> None:
        """Check the messages of the group, the fields of a record or the members of an enum."""
        all_declared = list(all_declared)
        for declared in all_declared:
            self._check_since(declared)
        self._check_old_names(kind, all_declared)

    def _check_since(self, declared: Declared) -> None:
        version = self.group.count("version")
        since = declared.section.count("since")
        if since > version and not self.group.incomplete("version"):
            remedy = (
                "raise the group's 'version'"
                if "version" in self.group
                else f"set 'version: {since}' in the group"
            )
            self.problems.add(
                declared.section.place_of("since"),
                "since-version",
                f"{declared.what} has 'since: {since}', above the group's version {version}; "
                f"{remedy}",
            )

    def _check_old_names(self, kind: str, all_declared: list[Declared]) -> None:
        current = {each.name for each in all_declared}
        old: dict[str, str] = {}
        for each in all_declared:
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
                names.check_old_name(was, kind, each.what, place, self.problems)
                continue
            self.problems.add(
                place,
                "was-clash",
                f"{each.what} has 'was: {was}', which is {clash}",
            )

    def check_appended(self, fields: Iterable[Declared]) -> None:
        """Check that later fields stand at the end, with a default for older writers."""
        before: Declared | None = None
        for field in fields:
            section = field.section
            if section.incomplete("since"):
                continue
            since = section.count("since")
            if since > 1 and not (
                "default" in section or section.incomplete("default")
            ):
                self.problems.add(
                    section.place_of("since"),
                    "since-default",
                    f"{field.what} has 'since: {since}' but no default, so a reader cannot fill it "
                    "in for an older writer; add 'default:'",
                )
            if before and since < before.section.count("since"):
                self.problems.add(
                    section.place,
                    "since-order",
                    f"{field.what} is of version {since} but stands after '{before.name}' of "
                    f"version {before.section.count('since')}; added fields go to the end: move "
                    "it or raise its 'since'",
                )
            before = field

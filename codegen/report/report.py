"""One report of a run: diffs with older versions, lint, and modules that are out of date."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from msgen.codegen.evolve import Diff, Finding
from msgen.codegen.schema.errors import Place, Problem
from msgen.codegen.schema.rule import ERROR, NOTE, WARNING, Rule
from msgen.codegen.schema.texts import counted

from .wording import details

WAIVED = "waived"
"""What is shown instead of the level of a finding that a waiver allows."""


@dataclass(frozen=True)
class Result:
    """One line of a report, whatever part of the run it comes from.

    Attributes:
        level: `error`, `warning` or `note`.
        details: more lines, for people.
        waived: the reason of the waiver that allows it.
        identity: what stays the same when its line moves.
    """

    level: str
    rule: Rule
    place: Place
    text: str
    identity: str
    details: tuple[str, ...] = ()
    waived: str | None = None

    @property
    def message(self) -> str:
        """All that a person is told."""
        return "\n".join((self.text, *self.details))

    @property
    def shown_level(self) -> str:
        return self.level if self.waived is None else WAIVED


@dataclass(frozen=True)
class Report:
    """Everything that a run found.

    Attributes:
        schema_dir: the schema folder, as the user gave it.
        about_waivers: findings about waivers, which are of no diff.
        skipped: versions that could not be compared, with the reason.
        stale: kind and path of generated files that are not up to date.
    """

    schema_dir: Path
    diffs: tuple[Diff, ...] = ()
    about_waivers: tuple[Finding, ...] = ()
    skipped: tuple[str, ...] = ()
    lint: tuple[Problem, ...] = ()
    stale: tuple[tuple[str, str], ...] = ()

    def results(self) -> Iterator[Result]:
        """Yield all results, in the order in which a reader wants them."""
        yield from self.lint_results()
        yield from self.stale_modules()
        for diff in self.diffs:
            yield from map(self.result, diff.findings)
        yield from map(self.result, self.about_waivers)

    def lint_results(self) -> Iterator[Result]:
        for each in self.lint:
            text = each.message
            yield Result(each.severity, each.rule, each.place, text, text)

    def stale_modules(self) -> Iterator[Result]:
        remedy = f"run 'msgen build {self.schema_dir.as_posix()}'"
        for kind, path in self.stale:
            text = f"generated module is {kind}; {remedy}"
            yield Result(ERROR, STALE_MODULE, Place(path), text, path)

    def result(self, finding: Finding) -> Result:
        """Return a finding of a diff as a result."""
        change = finding.change
        place = self.located(change.place)
        return Result(
            finding.severity,
            change.rule,
            place,
            change.text,
            f"{change.subject} {change.old} {change.new}",
            tuple(details(finding, place)),
            finding.waiver.reason if finding.waiver else None,
        )

    def located(self, place: Place) -> Place:
        """Return a place in the files of today; what is only in old files has its old line there."""
        folder = self.schema_dir.as_posix()
        inside = place.path.removeprefix("" if folder == "." else f"{folder}/")
        if "/" not in inside and ":" not in inside:
            return place
        name = place.path.rpartition("/")[2].rpartition(":")[2]
        return place._replace(path=(self.schema_dir / name).as_posix())

    @cached_property
    def _root(self) -> Path:
        """The folder of the repository, told by its `.git`; the working directory if none is."""
        inside = self.schema_dir.resolve()
        folders = (inside, *inside.parents)
        return next((each for each in folders if (each / ".git").exists()), Path.cwd())

    def in_repository(self, place: Place) -> str:
        """Return a place's path as other programs see it, which lay reports over a repository."""
        full = Path(place.path).resolve()
        inside = full.is_relative_to(self._root)
        return full.relative_to(self._root).as_posix() if inside else place.path

    def counts(self) -> Counter[str]:
        """Return how many results there are of each level, and how many are `waived`."""
        return Counter(each.shown_level for each in self.results())

    def summary(self) -> str:
        """Return the last line: how much was found."""
        counts = self.counts()
        shown = [each for each in (WARNING, NOTE) if counts[each]]
        parts = [counted(counts[level], level) for level in (ERROR, *shown)]
        parts += [f"{counts[WAIVED]} {WAIVED}"] if counts[WAIVED] else []
        return ", ".join(parts)

    def fails(self, strict: bool) -> bool:
        """Say whether the run found something that makes it fail."""
        counts = self.counts()
        failing = counts[ERROR] or (strict and counts[WARNING])
        return bool(self.lint or self.stale or failing)


STALE_MODULE = Rule(
    "stale-module",
    "a generated module is not what the schema gives",
    "What runs is the module: until it is built again, a change of the schema is not in it, and "
    "who reads the schema is told what is not so.",
    "run `msgen build`, and commit what it writes together with the schema.",
    finder=Report.stale_modules,
)

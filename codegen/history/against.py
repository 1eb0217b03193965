"""The older versions that a schema is compared with: from git, or from a folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from msgen.codegen.schema import model
from msgen.codegen.schema.errors import SchemaError
from msgen.codegen.schema.loader import Known, load_files, load_schema
from msgen.codegen.schema.texts import shown

from .git import FolderMissingError, GitError, Repository

MERGE_BASE = "merge-base"
"""What stands for the commit in which this branch left the default branch."""


_PATHS = ("./", "../", "/", "~/")


class AgainstError(Exception):
    """There is nothing to compare with; the text says why and what to do."""


@dataclass(frozen=True)
class Previous:
    """An older version of a schema.

    Attributes:
        against: how the user called it.
        label: what that stands for, such as a commit's id.
    """

    against: str
    label: str
    schema: model.Schema


def older_versions(
    schema_dir: Path,
    against: str | None,
    transitive: str | None,
    allow_missing: bool,
    known: Known,
) -> tuple[list[Previous], list[str]]:
    """Load the versions of a schema that the options of a command name.

    Args:
        against: a branch, tag, commit or folder; `merge-base` for where this branch began. A name
            that is both is taken for the revision, unless it is written as a path: `./name`.
        transitive: a pattern of tags; those without the schema folder are left out.
        allow_missing: ``against`` may be a commit without the folder.
        known: the files of today, see `load_schema`.

    Returns:
        The versions, and why others have none.

    Raises:
        AgainstError: one cannot be found or read.
    """
    found: list[Previous] = []
    skipped: list[str] = []
    if against is not None:
        with _told_as(shown(against)):
            commit = _commit_of(schema_dir, against)
            try:
                found.append(
                    commit.load(schema_dir, known) if commit else _folder(against)
                )
            except FolderMissingError:
                if not allow_missing:
                    raise
                assert commit
                skipped.append(
                    f"{against} ({commit.label}) has no schema folder; a new schema breaks nobody"
                )
    if transitive is not None:
        without = []
        with _told_as(f"tags {shown(transitive)}"):
            for commit in _tagged(schema_dir, transitive):
                try:
                    found.append(commit.load(schema_dir, known))
                except FolderMissingError:
                    without.append(f"tag {commit.against} has no schema folder")
        skipped[:0] = without
    return found, skipped


@dataclass(frozen=True)
class _Commit:
    """A commit of a repository.

    Attributes:
        shown_as: how places in its files call it.
    """

    repository: Repository
    id: str
    against: str
    label: str
    shown_as: str

    def load(self, schema_dir: Path, known: Known) -> Previous:
        path = self.repository.path_of(schema_dir)
        files = self.repository.files(self.id, path)
        # Git's own way to write a file of a commit, so that it can be looked at with `git show`.
        place = f"{self.shown_as}:{path if path.name else ''}"
        with _readable(self.against):
            schema = load_files(schema_dir.resolve().name, place, files, known)
        return Previous(self.against, self.label, schema)


def _commit_of(schema_dir: Path, against: str) -> _Commit | None:
    """Return the commit that a name means, None where it is a folder."""
    if against in (".", "..") or against.endswith("/") or against.startswith(_PATHS):
        return None
    try:
        repository = Repository.of(schema_dir)
        if against == MERGE_BASE:
            id_, branch = repository.merge_base()
            label = f"{id_[:12]}, where this branch left {branch}"
            return _Commit(repository, id_, against, label, id_[:12])
        id_ = repository.commit(against)
        return _Commit(repository, id_, against, id_[:12], against)
    except GitError:
        if Path(against).is_dir():
            return None
        raise


def _tagged(schema_dir: Path, pattern: str) -> Iterator[_Commit]:
    repository = Repository.of(schema_dir)
    tags = repository.tags(pattern)
    if not tags:
        shallow = "; this clone is shallow and may lack them"
        raise GitError(
            f"no tag matches{shallow if repository.is_shallow() else ''}; fetch them with "
            "'git fetch --tags', or give another pattern"
        )
    for tag in tags:
        id_ = repository.commit(f"refs/tags/{tag}")
        yield _Commit(repository, id_, tag, id_[:12], tag)


def _folder(against: str) -> Previous:
    with _readable(against):
        return Previous(against, "folder", load_schema(Path(against).expanduser()))


@contextmanager
def _readable(against: str) -> Iterator[None]:
    try:
        yield
    except SchemaError as error:
        raise AgainstError(
            f"cannot compare with {shown(against)}: its schema has errors; compare with a version "
            f"that this msgen reads\n{error}"
        ) from error


@contextmanager
def _told_as(what: str) -> Iterator[None]:
    try:
        yield
    except GitError as error:
        raise AgainstError(f"cannot compare with {what}: {error}") from error

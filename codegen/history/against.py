"""The older versions that a schema is compared with: from git, or from a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from msgen.codegen.schema import model
from msgen.codegen.schema.errors import SchemaError
from msgen.codegen.schema.loader import Known, load_files, load_schema
from msgen.codegen.schema.texts import shown

from .git import FolderMissingError, GitError, Repository

MERGE_BASE = "merge-base"
"""What stands for the commit in which this branch left the default branch."""


class AgainstError(Exception):
    """There is nothing to compare with; the text says why and what to do."""


@dataclass(frozen=True)
class Previous:
    """An older version of a schema.

    Attributes:
        against: how the user called it.
        label: what that stands for, such as a commit's id.
        schema: None where there was no schema yet, and that is allowed.
    """

    against: str
    label: str
    schema: model.Schema | None


def previous_version(
    schema_dir: Path, against: str, allow_missing: bool, known: Known
) -> Previous:
    """Load the version of a schema that ``against`` names.

    Args:
        against: a branch, tag, commit or folder; `merge-base` for where this branch began. A name
            that is both is taken for the revision, unless it is written as a path: `./name`.
        allow_missing: a commit without the folder is no error.
        known: the files of today, see `load_schema`.

    Raises:
        AgainstError: it cannot be found or read.
    """
    try:
        if _is_path(against):
            return _from_folder(against)
        try:
            repository = Repository.of(schema_dir)
            if against == MERGE_BASE:
                commit, branch = repository.merge_base()
                label = f"{commit[:12]}, where this branch left {branch}"
            else:
                commit = repository.commit(against)
                label = commit[:12]
        except GitError:
            if Path(against).is_dir():
                return _from_folder(against)
            raise
        shown_as = commit[:12] if against == MERGE_BASE else against
        return _from_git(
            repository,
            schema_dir,
            commit,
            against,
            shown_as,
            label,
            allow_missing,
            known,
        )
    except GitError as error:
        raise AgainstError(f"cannot compare with {shown(against)}: {error}") from error


def tagged_versions(
    schema_dir: Path, pattern: str, known: Known
) -> tuple[list[Previous], list[str]]:
    """Load the versions of all tags that match a pattern.

    Returns:
        The versions, and the tags that have no schema folder.

    Raises:
        AgainstError: no tag matches, or a version cannot be read.
    """
    try:
        repository = Repository.of(schema_dir)
        tags = repository.tags(pattern)
        if not tags:
            hint = (
                "; this clone is shallow and may lack them"
                if repository.is_shallow()
                else ""
            )
            raise GitError(
                f"no tag matches{hint}; fetch them with 'git fetch --tags', or give another pattern"
            )
        found, without = [], []
        for tag in tags:
            commit = repository.commit(f"refs/tags/{tag}")
            version = _from_git(
                repository, schema_dir, commit, tag, tag, commit[:12], True, known
            )
            if version.schema is None:
                without.append(tag)
            else:
                found.append(version)
    except GitError as error:
        raise AgainstError(
            f"cannot compare with tags {shown(pattern)}: {error}"
        ) from error
    return found, without


def _is_path(text: str) -> bool:
    return (
        text.startswith(("./", "../", "/", "~/"))
        or text in (".", "..")
        or text[-1:] == "/"
    )


def _from_folder(text: str) -> Previous:
    try:
        return Previous(text, "folder", load_schema(Path(text).expanduser()))
    except SchemaError as error:
        raise _unreadable(text, error) from error


def _from_git(
    repository: Repository,
    schema_dir: Path,
    commit: str,
    against: str,
    shown_as: str,
    label: str,
    allow_missing: bool,
    known: Known,
) -> Previous:
    path = repository.path_of(schema_dir)
    try:
        files = repository.files(commit, path)
    except FolderMissingError:
        if allow_missing:
            return Previous(against, label, None)
        raise
    try:
        # Git's own way to write a file of a commit, so that it can be looked at with `git show`.
        place = f"{shown_as}:{path}" if str(path) != "." else f"{shown_as}:"
        schema = load_files(schema_dir.resolve().name, place, files, known)
    except SchemaError as error:
        raise _unreadable(against, error) from error
    return Previous(against, label, schema)


def _unreadable(against: str, error: SchemaError) -> AgainstError:
    return AgainstError(
        f"cannot compare with {shown(against)}: its schema has errors; compare with a version "
        f"that this msgen reads\n{error}"
    )

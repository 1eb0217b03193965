"""Files of a commit, straight out of git: no checkout, and the work tree is not touched."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from msgen.codegen.schema.texts import shown

# What git tells its hooks about their repository, which need not be the one of the schema.
_OF_A_HOOK = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
)
_ALWAYS = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
_DEFAULT_BRANCHES = ("HEAD", "main", "master")
_SHALLOW = (
    "this clone is shallow: fetch the history with 'git fetch --unshallow', or in GitHub Actions "
    "give actions/checkout 'fetch-depth: 0'"
)


_Done: TypeAlias = "subprocess.CompletedProcess[bytes]"


class GitError(Exception):
    """Git cannot give the old files; the text says why and what to do."""


class FolderMissingError(GitError):
    """The schema folder was not there in that commit."""


@dataclass(frozen=True)
class Repository:
    """A git repository with a work tree."""

    root: Path
    environment: dict[str, str] = field(repr=False)

    @classmethod
    def of(cls, folder: Path) -> Repository:
        """Find the repository that a folder is in, submodules and worktrees included.

        Raises:
            GitError: there is none, or git refuses it.
        """
        clean = {
            key: value for key, value in os.environ.items() if key not in _OF_A_HOOK
        } | _ALWAYS
        done = _git(clean, folder, "rev-parse", "--show-toplevel")
        if done.returncode and "GIT_DIR" in os.environ:
            # No repository around the folder: it is one whose folder the variable alone tells.
            told = os.environ | _ALWAYS
            done = _git(
                told, Path(), "rev-parse", "--absolute-git-dir", "--show-toplevel"
            )
            if done.returncode == 0:
                git_dir, _, top = os.fsdecode(done.stdout).rstrip("\n").partition("\n")
                clean |= {"GIT_DIR": git_dir, "GIT_WORK_TREE": top}
                done.stdout = os.fsencode(f"{top}\n")
        if done.returncode:
            raise GitError(_why_none(folder, _error(done)))
        root = Path(os.fsdecode(done.stdout).removesuffix("\n"))
        return cls(root.resolve(), clean)

    def path_of(self, folder: Path) -> PurePosixPath:
        """Return a folder's path in the repository, links followed."""
        try:
            inside = folder.resolve().relative_to(self.root)
        except ValueError:
            raise GitError(
                f"{folder.as_posix()} is not in the repository {self.root.as_posix()}; "
                "give a folder to compare with: --against FOLDER"
            ) from None
        return PurePosixPath(inside.as_posix())

    def commit(self, revision: str) -> str:
        """Return the id of the commit that a branch, tag or other revision means.

        A branch that only the remote has is found there.

        Raises:
            GitError: there is no such revision.
        """
        found = self._find(revision) or self._find(f"refs/remotes/origin/{revision}")
        if found is None:
            raise GitError(
                f"git knows no revision {shown(revision)}, and there is no such folder; fetch it, "
                f"or write a folder as ./{revision}"
                + (f"; {_SHALLOW}" if self.is_shallow() else "")
            )
        return found

    def _find(self, revision: str) -> str | None:
        options = ("--verify", "--quiet", "--end-of-options")
        return self._line("rev-parse", *options, f"{revision}^{{commit}}") or None

    def is_shallow(self) -> bool:
        return self._line("rev-parse", "--is-shallow-repository") == "true"

    def merge_base(self) -> tuple[str, str]:
        """Return where HEAD left the default branch: the commit's id, and the branch.

        Raises:
            GitError: there is no commit, no default branch, or no common commit.
        """
        if self._find("HEAD") is None:
            raise GitError(
                "there is no commit yet to compare with; commit the schema first, or give a "
                "folder: --against FOLDER"
            )
        branch = self._default_branch()
        if branch is None:
            raise GitError(
                "the repository has no default branch (origin/HEAD, main or master); "
                + self._remedy(
                    "name what to compare with: --against BRANCH, TAG, COMMIT or FOLDER"
                )
            )
        # origin/HEAD stands for a branch such as origin/main.
        name = self._line("rev-parse", "--abbrev-ref", branch)
        commit = self._line("merge-base", "HEAD", branch)
        if not commit:
            remedy = self._remedy(f"compare with its tip: --against {name}")
            raise GitError(f"HEAD and {name} have no common commit; {remedy}")
        return commit, name

    def _remedy(self, otherwise: str) -> str:
        return _SHALLOW if self.is_shallow() else otherwise

    def _default_branch(self) -> str | None:
        patterns = [f"refs/remotes/*/{name}" for name in _DEFAULT_BRANCHES]
        local = [f"refs/heads/{name}" for name in _DEFAULT_BRANCHES[1:]]
        known = self._refs("refname", *patterns, *local)
        remotes = {
            each.split("/")[2] for each in known if each.startswith("refs/remotes")
        }
        if len(remotes) > 1:
            remotes &= {"origin"}
        wanted = [
            f"refs/remotes/{remote}/{name}"
            for remote in remotes
            for name in _DEFAULT_BRANCHES
        ]
        return next((each for each in (*wanted, *local) if each in known), None)

    def tags(self, pattern: str) -> list[str]:
        """Return the tags that match a pattern such as `v1.*`, oldest version first."""
        return self._refs("refname:strip=2", f"refs/tags/{pattern}")

    def _refs(self, field: str, *patterns: str) -> list[str]:
        options = ("--sort=version:refname", f"--format=%({field})")
        return os.fsdecode(
            self._git("for-each-ref", *options, *patterns).stdout
        ).split()

    def files(self, commit: str, folder: PurePosixPath) -> dict[str, bytes]:
        """Return the files directly in a folder of a commit, by name.

        Raises:
            FolderMissingError: the folder was not there.
            GitError: it was no folder, or an object is not there.
        """
        path = "" if str(folder) == "." else f"{folder}/"
        if path:
            self._check_folder(commit, str(folder))
        blobs = {}
        for mode, kind, object_id, name in self._entries(commit, path):
            if kind == "blob" and name.endswith((".yaml", ".yml")):
                if mode == "120000":
                    raise GitError(
                        f"{name} is a symbolic link in {commit[:12]}, which has no content of its "
                        "own; compare with another commit or with a folder"
                    )
                blobs[PurePosixPath(name).name] = object_id
        return dict(zip(blobs, self._read(blobs.values())))

    def _check_folder(self, commit: str, path: str) -> None:
        entry = next(self._entries(commit, path), None)
        if entry is None:
            raise FolderMissingError(
                f"there was no folder {path} in {commit[:12]}; compare with a commit that has it, "
                "or pass --allow-missing where a new schema breaks nobody"
            )
        mode, kind, _, _ = entry
        if kind != "tree":
            what = {"commit": "a submodule", "blob": "a file"}[kind]
            what = "a symbolic link" if mode == "120000" else what
            raise GitError(
                f"{path} was {what} and no folder in {commit[:12]}; compare with another commit, or "
                "check that version out and give its folder"
            )

    def _entries(self, commit: str, path: str) -> Iterator[tuple[str, str, str, str]]:
        arguments = ["ls-tree", "-z", "--full-tree", commit]
        done = self._git(*arguments, *(["--", path] if path else []))
        if done.returncode:
            raise GitError(f"git cannot list {path or 'the files'}: {_error(done)}")
        for line in done.stdout.split(b"\0"):
            if line:
                head, _, name = os.fsdecode(line).partition("\t")
                mode, kind, object_id = head.split()[:3]
                yield mode, kind, object_id, name

    def _read(self, objects: Iterable[str]) -> Iterator[bytes]:
        wanted = list(objects)
        text = "".join(f"{each}\n" for each in wanted).encode()
        done = self._git("cat-file", "--batch", given=text)
        data, at = done.stdout, 0
        for object_id in wanted:
            line = data[at : data.find(b"\n", at)]
            parts = line.split()
            if done.returncode or len(parts) != 3:
                raise GitError(
                    f"object {object_id[:12]} is not in this clone; fetch it with 'git fetch', or "
                    f"make a full clone ({_error(done)})"
                )
            start = at + len(line) + 1
            at = start + int(parts[2]) + 1
            yield data[start : at - 1]

    def _line(self, *arguments: str) -> str:
        """Return the first line of what a command of git prints; nothing where it fails."""
        done = self._git(*arguments)
        return "" if done.returncode else os.fsdecode(done.stdout).partition("\n")[0]

    def _git(self, *arguments: str, given: bytes = b"") -> _Done:
        return _git(self.environment, self.root, *arguments, given=given)


def _git(
    environment: dict[str, str], folder: Path, *arguments: str, given: bytes = b""
) -> _Done:
    try:
        return subprocess.run(
            ["git", *arguments],
            cwd=folder,
            env=environment,
            input=given,
            capture_output=True,
        )
    except FileNotFoundError:
        raise GitError(
            "git is not installed; install it, or give a folder: --against FOLDER"
        ) from None


def _error(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return what git said, on one line."""
    return (
        " ".join(os.fsdecode(done.stderr).split()) or f"git exit code {done.returncode}"
    )


def _why_none(folder: Path, error: str) -> str:
    name = folder.as_posix()
    if "dubious ownership" in error:
        return (
            f"git refuses the repository of {name}, which belongs to another user; trust it with "
            f"'git config --global --add safe.directory {folder.resolve().as_posix()}'"
        )
    if "work tree" in error:
        return f"{name} is in a bare repository, without files; work in a clone of it"
    return f"{name} is in no git repository; give a folder to compare with: --against FOLDER"

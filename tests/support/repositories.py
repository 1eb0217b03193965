"""Real git repositories for tests, with an identity and settings of their own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_SETTINGS = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "tests",
    "GIT_AUTHOR_EMAIL": "tests@example.org",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_NAME": "tests",
    "GIT_COMMITTER_EMAIL": "tests@example.org",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "protocol.file.allow",
    "GIT_CONFIG_VALUE_0": "always",
    "GIT_CONFIG_KEY_1": "init.defaultBranch",
    "GIT_CONFIG_VALUE_1": "main",
}


@dataclass(frozen=True)
class Git:
    """A repository in a folder."""

    folder: Path

    def __call__(self, *arguments: str, **environment: str) -> str:
        """Run git and return what it printed."""
        clean = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith("GIT_")
        }
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env={**clean, **_SETTINGS, **environment},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"git {arguments}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def commit(self, files: Mapping[str, str], message: str = "Change") -> str:
        """Write files, commit everything, and return the commit's id."""
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self("add", "--all")
        self("commit", "--quiet", "--allow-empty", "--message", message)
        return self("rev-parse", "HEAD")


def init(folder: Path, branch: str = "main") -> Git:
    """Make an empty repository."""
    folder.mkdir(parents=True, exist_ok=True)
    git = Git(folder)
    git("init", "--quiet", f"--initial-branch={branch}")
    return git


def clone(source: Path, folder: Path, *options: str) -> Git:
    """Clone a repository through git's own transport, so that a shallow clone is one."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    Git(folder.parent)("clone", "--quiet", *options, source.as_uri(), str(folder))
    return Git(folder)

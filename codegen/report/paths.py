"""Paths as a repository sees them, for reports that other programs lay over its files."""

from __future__ import annotations

from pathlib import Path


def repository_root(folder: Path) -> Path:
    """Return the folder of the repository, told by its `.git`; the working directory if none is."""
    inside = folder.resolve()
    for each in (inside, *inside.parents):
        if (each / ".git").exists():
            return each
    return Path.cwd()


def path_in(root: Path, path: str) -> str:
    """Return a path as seen from a folder, where it is inside."""
    full = Path(path).resolve()
    return full.relative_to(root).as_posix() if full.is_relative_to(root) else path

"""YAML files to a checked schema; every problem of the run is reported at once."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeAlias

from . import model, names
from .declare import build_groups
from .errors import Place, Problems
from .recursion import check_recursion
from .rule import Rule
from .sections import Section, read_section
from .texts import shown
from .types import build_scopes
from .yaml import parse_yaml, place_at

SUFFIX = ".yaml"
SETTINGS_FILE = "msgen.yaml"
"""Stands in the schema folder and holds no group: see waivers.py."""


class _Source(NamedTuple):
    """A file: its path in the schema folder, how errors call it, and how to get its bytes."""

    path: PurePosixPath
    label: str
    read: Callable[[], bytes]


Known: TypeAlias = dict[tuple[str, str], Section]
"""Name and text of files that were read without a problem to what they hold."""


def load_schema(folder: Path, known: Known | None = None) -> model.Schema:
    """Load all groups of a schema folder.

    Args:
        folder: holds one `<group>.yaml` per group, without subfolders.
        known: is filled, so that another version of the schema need not read equal files again.

    Raises:
        SchemaError: with every problem found, sorted by place.
    """
    problems = Problems()
    if not folder.is_dir():
        problems.add(
            Place(str(folder)),
            NO_SCHEMA,
            "no such folder; give the folder of the schema files",
        )
    elif not folder.resolve().name.isprintable():
        # The name stands in the header of the generated files.
        problems.add(
            Place(ascii(str(folder))),
            FOLDER_NAME,
            "the name of the schema folder has characters that cannot be printed; rename it",
        )
    problems.raise_if_any()
    sources = (
        _Source(
            PurePosixPath(path.relative_to(folder).as_posix()),
            path.as_posix(),
            path.read_bytes,
        )
        for path in sorted(folder.rglob("*"))
    )
    known = {} if known is None else known
    return _load(folder.resolve().name, folder.as_posix(), sources, problems, known)


def load_files(
    name: str, label: str, files: Mapping[str, bytes], known: Known | None = None
) -> model.Schema:
    """Load a schema from memory, such as the files of a commit.

    Args:
        name: the schema folder's own name.
        label: how errors and places call the folder, such as `main:schema`.
        files: path in the folder to content.
        known: files of another version; the places in those that are equal are that version's.

    Raises:
        SchemaError: with every problem found, sorted by place.
    """
    start = label if label.endswith(":") else f"{label}/"
    sources = (
        _Source(PurePosixPath(path), f"{start}{path}", io.BytesIO(data).read)
        for path, data in sorted(files.items())
    )
    return _load(name, label, sources, Problems(), known or {})


def _load(
    name: str,
    label: str,
    sources: Iterable[_Source],
    problems: Problems,
    known: Known,
) -> model.Schema:
    files = _Files(label, problems, known)
    files.read(sources)
    scopes = build_scopes(files.groups, files.unread, problems)
    built = build_groups(files.groups, scopes, problems)
    problems.raise_if_any()
    check_recursion(built, problems)
    problems.raise_if_any()
    return model.Schema(name, built)


@dataclass
class _Files:
    """The files of a schema folder."""

    label: str
    problems: Problems
    known: Known
    groups: dict[str, Section] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)
    """Names of files that were found but hold no group that could be read."""

    def read(self, sources: Iterable[_Source]) -> None:
        for source in sources:
            # Editors and version control keep files of their own beside the schema.
            if source.path.suffix not in (SUFFIX, ".yml") or any(
                part.startswith(".") for part in source.path.parts
            ):
                continue
            if str(source.path) == SETTINGS_FILE:
                self._check_settings(source)
            else:
                self._read_file(source)
        if not self.groups and not self.problems.found:
            self.problems.add(
                Place(self.label),
                NO_SCHEMA,
                f"no {SUFFIX} file in this folder; 'msgen init' makes a first one",
            )

    def _check_settings(self, source: _Source) -> None:
        """Refuse a group in the file of settings, which would pass unseen."""
        text = self._read_text(source) or ""
        for number, line in enumerate(text.split("\n"), 1):
            if line.startswith("group:"):
                self.problems.add(
                    Place(source.label, number),
                    GROUP_FILE,
                    f"{SETTINGS_FILE} holds waivers and no group; rename the group and its file",
                )

    def _read_file(self, source: _Source) -> None:
        path = source.path
        direct = len(path.parts) == 1
        if path.suffix != SUFFIX or not direct:
            self.unread.add(path.stem)
            remedy = f"rename it to {path.stem}{SUFFIX}" if direct else "move it there"
            self.problems.add(
                Place(source.label),
                FILE_PLACE,
                f"schema files are named <group>{SUFFIX} and stand directly in the schema folder; "
                f"{remedy}",
            )
            return
        section = self._read_group(source)
        if section is None:
            self.unread.add(path.stem)
            return
        name = section.text("group") or path.stem
        if name == path.stem:
            self.groups[name] = section
        else:
            self.unread.add(path.stem)
            self.groups.setdefault(name, section)

    def _read_group(self, source: _Source) -> Section | None:
        path, label = source.path, source.label
        text = self._read_text(source)
        if text is not None and (path.name, text) in self.known:
            return self.known[path.name, text]
        before = len(self.problems.found)
        node = None if text is None else parse_yaml(text, label, self.problems)
        if node is None:
            return None
        section = read_section("group", path.stem, node.place, node, self.problems)
        if "group" in section:
            name = section.text("group")
            place = section.place_of("group")
            names.check_group_name(name, "group", place, self.problems)
            if name != path.stem:
                self.problems.add(
                    place,
                    GROUP_FILE,
                    f"group {shown(name)} stands in {path.name}; the file of a group is named "
                    f"after it: rename the file to {name}{SUFFIX} or the group to '{path.stem}'",
                )
        if text is not None and len(self.problems.found) == before:
            self.known[path.name, text] = section
        return section

    def _read_text(self, source: _Source) -> str | None:
        try:
            text = source.read().decode("utf-8-sig")
            return text.replace("\r\n", "\n").replace("\r", "\n")
        except OSError as error:
            self.problems.add(
                Place(source.label),
                UNREADABLE_FILE,
                f"cannot be read: {error.strerror}; make it a readable file or remove it",
            )
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode("utf-8")
            self.problems.add(
                place_at(before, len(before), source.label),
                ENCODING,
                f"byte 0x{error.object[error.start]:02x} is not UTF-8; save the file as UTF-8",
            )
        return None


NO_SCHEMA = Rule(
    "no-schema",
    "there is no schema folder, or no schema file in it",
    "There is nothing to generate. Most likely the command runs in another folder than it should.",
    "give the folder of the schema files, or make a first one with `msgen init`.",
    load_schema,
)
FOLDER_NAME = Rule(
    "folder-name",
    "the schema folder's name has characters that cannot be printed",
    "The name stands in the first line of every generated file.",
    "rename the folder.",
    load_schema,
)
FILE_PLACE = Rule(
    "file-place",
    "a YAML file is not where schema files stand, or not named as they are",
    "It would not be read, and the group in it would be missing without a word.",
    f"put it directly into the schema folder as `<group>{SUFFIX}`, or take it out of there.",
    _Files._read_file,
)
GROUP_FILE = Rule(
    "group-file",
    "a file is not named after the group in it",
    "A reader would look for the group in another file, and two files could claim one name. "
    f"{SETTINGS_FILE} holds settings, so that no group can have its name.",
    "rename the file or the group.",
    _Files._read_group,
)
UNREADABLE_FILE = Rule(
    "unreadable-file",
    "a file cannot be read",
    "What it declares is unknown, so nothing of the schema can be generated.",
    "make it a readable file, or remove it; a link may lead nowhere.",
    _Files._read_text,
)
ENCODING = Rule(
    "encoding",
    "a file is not UTF-8",
    "Names and texts would be read as other ones than were written.",
    "save the file as UTF-8.",
    _Files._read_text,
)

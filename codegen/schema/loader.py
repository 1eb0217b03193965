"""YAML files to a checked schema; every problem of the run is reported at once."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeAlias

from msgen.codegen.schema.declare.groups import Declarations
from msgen.codegen.schema.sections.reader import read_section
from msgen.codegen.schema.sections.section import Section
from msgen.codegen.schema.types.scope import build_scopes
from msgen.codegen.schema.yaml.compose import parse_yaml
from msgen.codegen.schema.yaml.events import place_at

from . import model, names
from .errors import Place, Problems
from .recursion import check_recursion
from .texts import shown

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
            "no-schema",
            "no such folder; give the folder of the schema files",
        )
    elif not folder.resolve().name.isprintable():
        # The name stands in the header of the generated files.
        problems.add(
            Place(ascii(str(folder))),
            "folder-name",
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
    built = Declarations(files.groups, scopes, problems).build()
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
                "no-schema",
                f"no {SUFFIX} file in this folder; 'msgen init' makes a first one",
            )

    def _check_settings(self, source: _Source) -> None:
        """Refuse a group in the file of settings, which would pass unseen."""
        text = self._read_text(source) or ""
        for number, line in enumerate(text.split("\n"), 1):
            if line.startswith("group:"):
                self.problems.add(
                    Place(source.label, number),
                    "group-file",
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
                "file-place",
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
                    "group-file",
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
                "unreadable-file",
                f"cannot be read: {error.strerror}; make it a readable file or remove it",
            )
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode("utf-8")
            self.problems.add(
                place_at(before, len(before), source.label),
                "encoding",
                f"byte 0x{error.object[error.start]:02x} is not UTF-8; save the file as UTF-8",
            )
        return None

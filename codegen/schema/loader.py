"""YAML files to a checked schema; every problem of the run is reported at once."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping
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
    groups, unread = _read_groups(sources, problems, known)
    if not groups and not problems.found:
        problems.add(
            Place(label),
            NO_SCHEMA,
            f"no {SUFFIX} file in this folder; 'msgen init' makes a first one",
        )
    scopes = build_scopes(groups, unread, problems)
    built = build_groups(groups, scopes, problems)
    problems.raise_if_any()
    check_recursion(built, problems)
    problems.raise_if_any()
    return model.Schema(name, built)


def _read_groups(
    sources: Iterable[_Source], problems: Problems, known: Known
) -> tuple[dict[str, Section], set[str]]:
    """Return the groups by name, and the names of files that hold no group of their name."""
    groups: dict[str, Section] = {}
    unread: set[str] = set()
    for source in sources:
        path = source.path
        # Editors and version control keep files of their own beside the schema.
        hidden = any(part.startswith(".") for part in path.parts)
        if hidden or path.suffix not in (SUFFIX, ".yml"):
            continue
        if str(path) == SETTINGS_FILE:
            _check_settings(source, problems)
            continue
        section = None
        if _is_in_place(source, problems):
            section = _read_group(source, problems, known)
        name = "" if section is None else section.text("group") or path.stem
        if name != path.stem:
            unread.add(path.stem)
        if section is not None and (name == path.stem or name not in groups):
            groups[name] = section
    return groups, unread


def _is_in_place(source: _Source, problems: Problems) -> bool:
    direct = len(source.path.parts) == 1
    if direct and source.path.suffix == SUFFIX:
        return True
    remedy = f"rename it to {source.path.stem}{SUFFIX}" if direct else "move it there"
    problems.add(
        Place(source.label),
        FILE_PLACE,
        f"schema files are named <group>{SUFFIX} and stand directly in the schema folder; "
        f"{remedy}",
    )
    return False


def _check_settings(source: _Source, problems: Problems) -> None:
    """Refuse a group in the file of settings, where nobody would read it."""
    text = _read_text(source, problems) or ""
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("group:"):
            problems.add(
                Place(source.label, number),
                GROUP_FILE,
                f"{SETTINGS_FILE} holds waivers and no group; rename the group and its file",
            )


def _read_group(source: _Source, problems: Problems, known: Known) -> Section | None:
    stem, file = source.path.stem, source.path.name
    text = _read_text(source, problems)
    if text is None:
        return None
    if (file, text) in known:
        return known[file, text]
    before = len(problems.found)
    node = parse_yaml(text, source.label, problems)
    if node is None:
        return None
    section = read_section("group", stem, node.place, node, problems)
    if "group" in section:
        name = section.text("group")
        place = section.place_of("group")
        names.check_name("group", name, place, problems)
        if name != stem:
            problems.add(
                place,
                GROUP_FILE,
                f"group {shown(name)} stands in {file}; the file of a group is named after it: "
                f"rename the file to {name}{SUFFIX} or the group to '{stem}'",
            )
    if len(problems.found) == before:
        known[file, text] = section
    return section


def _read_text(source: _Source, problems: Problems) -> str | None:
    try:
        text = source.read().decode("utf-8-sig")
        return text.replace("\r\n", "\n").replace("\r", "\n")
    except OSError as error:
        problems.add(
            Place(source.label),
            UNREADABLE_FILE,
            f"cannot be read: {error.strerror}; make it a readable file or remove it",
        )
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode("utf-8")
        problems.add(
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
    "It would not be read, and the group in it would silently be missing.",
    f"put it directly into the schema folder as `<group>{SUFFIX}`, or take it out of there.",
    _is_in_place,
)
GROUP_FILE = Rule(
    "group-file",
    "a file is not named after the group in it",
    "A reader would look for the group in another file, and two files could claim one name. "
    f"{SETTINGS_FILE} holds settings, so that no group can have its name.",
    "rename the file or the group.",
    _read_group,
)
UNREADABLE_FILE = Rule(
    "unreadable-file",
    "a file cannot be read",
    "What it declares is unknown, so nothing of the schema can be generated.",
    "make it a readable file, or remove it; a link may lead nowhere.",
    _read_text,
)
ENCODING = Rule(
    "encoding",
    "a file is not UTF-8",
    "Read in another encoding, names and texts are not what their author wrote.",
    "save the file as UTF-8.",
    _read_text,
)

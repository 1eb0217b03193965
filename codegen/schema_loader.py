"""A folder of YAML files to a checked schema; every problem of the run is reported at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from . import model, names
from .compose import parse_yaml
from .declare import Declarations
from .errors import Place, Problems
from .read_sections import read_section
from .recursion import check_recursion
from .scope import build_scopes
from .sections import Section
from .texts import shown
from .yaml_events import place_at

SUFFIX = ".yaml"


def load_schema(folder: Path) -> model.Schema:
    """Load all groups of a schema folder.

    Args:
        folder: holds one `<group>.yaml` per group, without subfolders.

    Raises:
        SchemaError: with every problem found, sorted by place.
    """
    problems = Problems()
    files = _Files(folder, problems)
    files.read()
    scopes = build_scopes(files.groups, files.unread, problems)
    built = Declarations(files.groups, scopes, problems).build()
    problems.raise_if_any()
    check_recursion(built, problems)
    problems.raise_if_any()
    return model.Schema(folder.resolve().name, built)


@dataclass
class _Files:
    """The files of a schema folder."""

    folder: Path
    problems: Problems
    groups: dict[str, Section] = field(default_factory=dict)
    unread: set[str] = field(default_factory=set)
    """Names of files that were found but hold no group that could be read."""

    def read(self) -> None:
        if not self.folder.is_dir():
            self.problems.add(
                Place(str(self.folder)),
                "no-schema",
                "no such folder; give the folder of the schema files",
            )
        elif not self.folder.resolve().name.isprintable():
            # The name stands in the header of the generated files.
            self.problems.add(
                Place(ascii(str(self.folder))),
                "folder-name",
                "the name of the schema folder has characters that cannot be printed; rename it",
            )
        self.problems.raise_if_any()
        for path in sorted(self.folder.rglob("*")):
            # Editors and version control keep files of their own beside the schema.
            if path.suffix in (SUFFIX, ".yml") and not any(
                part.startswith(".") for part in path.relative_to(self.folder).parts
            ):
                self._read_file(path)
        if not self.groups and not self.problems.found:
            self.problems.add(
                Place(_label(self.folder)),
                "no-schema",
                f"no {SUFFIX} file in this folder; 'msgen init' makes a first one",
            )

    def _read_file(self, path: Path) -> None:
        if path.suffix != SUFFIX or path.parent != self.folder:
            self.unread.add(path.stem)
            direct = path.parent == self.folder
            remedy = f"rename it to {path.stem}{SUFFIX}" if direct else "move it there"
            self.problems.add(
                Place(_label(path)),
                "file-place",
                f"schema files are named <group>{SUFFIX} and stand directly in the schema folder; "
                f"{remedy}",
            )
            return
        section = self._read_group(path)
        if section is None:
            self.unread.add(path.stem)
            return
        name = section.text("group") or path.stem
        if name == path.stem:
            self.groups[name] = section
        else:
            self.unread.add(path.stem)
            self.groups.setdefault(name, section)

    def _read_group(self, path: Path) -> Section | None:
        label = _label(path)
        text = self._read_text(path, label)
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
        return section

    def _read_text(self, path: Path, label: str) -> str | None:
        try:
            return path.read_text(encoding="utf-8-sig")
        except OSError as error:
            self.problems.add(
                Place(label),
                "unreadable-file",
                f"cannot be read: {error.strerror}; make it a readable file or remove it",
            )
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode("utf-8")
            self.problems.add(
                place_at(before, len(before), label),
                "encoding",
                f"byte 0x{error.object[error.start]:02x} is not UTF-8; save the file as UTF-8",
            )
        return None


def _label(path: Path) -> str:
    return path.as_posix()

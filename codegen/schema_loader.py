"""A folder of YAML files to a checked schema; every problem of the run is reported at once."""

from __future__ import annotations

from pathlib import Path

from . import model, names
from .declare import Declarations, check_name_collisions
from .errors import Place, Problems
from .nodes import parse_yaml
from .recursion import check_recursion
from .scope import build_scopes
from .sections import Section, read_section

SUFFIX = ".yaml"


def load_schema(folder: Path) -> model.Schema:
    """Load all groups of a schema folder.

    Args:
        folder: holds one `<group>.yaml` per group, without subfolders.

    Raises:
        SchemaError: with every problem found, sorted by place.
    """
    problems = Problems()
    groups = _read_groups(folder, problems)
    scopes = build_scopes(groups, problems)
    for name, group in groups.items():
        check_name_collisions(scopes[name], group, problems)
    built = Declarations(groups, scopes, problems).build()
    problems.raise_if_any()
    check_recursion(built, problems)
    problems.raise_if_any()
    return model.Schema(folder.resolve().name, built)


def _read_groups(folder: Path, problems: Problems) -> dict[str, Section]:
    if not folder.is_dir():
        problems.add(
            Place(str(folder)),
            "no-schema",
            "no such folder; give the folder of the schema files",
        )
        problems.raise_if_any()
    groups: dict[str, Section] = {}
    for path in sorted(folder.rglob("*.y*ml")):
        if path.suffix != SUFFIX or path.parent != folder:
            problems.add(
                Place(_label(path)),
                "file-place",
                f"schema files are named <group>{SUFFIX} and stand directly in the schema folder; "
                "move or rename this one",
            )
            continue
        section = _read_group(path, problems)
        if section is not None and "group" in section:
            groups.setdefault(section.text("group"), section)
    if not groups and not problems.found:
        problems.add(
            Place(_label(folder)),
            "no-schema",
            f"no {SUFFIX} file in this folder; 'msgen init' makes a first one",
        )
    problems.raise_if_any() if not groups else None
    return groups


def _read_group(path: Path, problems: Problems) -> Section | None:
    label = _label(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        place = Place(label, before.count(b"\n") + 1, error.start - before.rfind(b"\n"))
        problems.add(
            place,
            "encoding",
            f"byte 0x{error.object[error.start]:02x} is not UTF-8; save the file as UTF-8",
        )
        return None
    node = parse_yaml(text, label, problems)
    if node is None:
        return None
    section = read_section("group", path.stem, node.place, node, problems)
    if "group" in section:
        name = section.text("group")
        place = section.place_of("group")
        names.check_group_name(name, "group", place, problems)
        if name != path.stem:
            problems.add(
                place,
                "group-file",
                f"group '{name}' stands in {path.name}; the file of a group is named after it: "
                f"rename the file to {name}{SUFFIX} or the group to '{path.stem}'",
            )
    return section


def _label(path: Path) -> str:
    return path.as_posix()

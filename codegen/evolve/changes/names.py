"""Structs and enums by their names: what the generated code calls them, which no peer sees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from msgen.codegen.schema import model
from msgen.codegen.schema.errors import Place
from msgen.codegen.schema.model import EnumType, StructType

from .change import Change, Node
from .walk import Walk

_Ref: TypeAlias = StructType | EnumType
_Named: TypeAlias = Mapping[_Ref, model.Struct | model.Enum]


def compare_names(found: Walk) -> Iterator[tuple[Node | None, Change]]:
    """Yield which structs and enums are new, gone, renamed, moved, or stand for one another.

    Each comes with the node that leads to it from the messages of both versions, if one does.
    """
    homes = {
        pair.old.name: pair.new.name for pair in found.groups if pair.old and pair.new
    }
    olds, news = _named(found.old), _named(found.new)
    kept = {
        ref: type(ref)(homes[ref.group], ref.name) for ref in olds if ref.group in homes
    }
    kept = {ref: same for ref, same in kept.items() if same in news}
    gone = {ref: olds[ref] for ref in olds if ref not in kept}
    fresh = {ref: news[ref] for ref in news if ref not in kept.values()}
    told: set[_Ref] = set()
    for node, sites in found.met.items():
        old_ref, new_ref = node.old, node.new
        if not isinstance(old_ref, _Ref) or not isinstance(new_ref, _Ref):
            continue
        if old_ref in gone and new_ref in fresh:
            told |= {old_ref, new_ref}
            yield node, _renamed(gone[old_ref], fresh[new_ref])
        elif kept.get(old_ref) != new_ref:
            for site in sites:
                kind = "struct" if isinstance(new_ref, StructType) else "enum"
                change = Change(
                    "TYPE_REPLACED",
                    site.subject,
                    site.place,
                    site.old_place,
                    f"{site.what} holds {kind} '{new_ref.name}', held '{old_ref.name}'",
                    old_ref.name,
                    new_ref.name,
                    site.old_subject,
                    source=True,
                )
                yield node, change
    unmet = _unmet(
        {ref: each for ref, each in gone.items() if ref not in told},
        {ref: each for ref, each in fresh.items() if ref not in told},
        {old: found.new.groups[new].place for old, new in homes.items()},
        set(found.new.groups) - set(homes.values()),
    )
    yield from ((None, change) for change in unmet)


def _unmet(
    gone: _Named, fresh: _Named, homes: Mapping[str, Place], new_groups: set[str]
) -> Iterator[Change]:
    """Tell what no message led to, or what only one version has."""
    moved: set[_Ref] = set()
    for ref, old in gone.items():
        same = [
            each for each in fresh if type(each) is type(ref) and each.name == ref.name
        ]
        if len(same) == 1:
            moved |= {ref, same[0]}
            yield _renamed(old, fresh[same[0]])
    for ref, old in gone.items():
        if ref not in moved and ref.group in homes:
            kind = _kind(old)
            yield Change(
                f"{kind.upper()}_REMOVED",
                f"{old.group}.{old.name}",
                homes[ref.group],
                old.place,
                f"{kind} '{old.name}' is gone",
                old.name,
                "",
                f"{old.group}.{old.name}",
                source=True,
            )
    for ref, new in fresh.items():
        if ref not in moved and ref.group not in new_groups:
            kind = _kind(new)
            yield Change(
                f"{kind.upper()}_ADDED",
                f"{new.group}.{new.name}",
                new.place,
                None,
                f"{kind} '{new.name}' is new",
                "",
                new.name,
            )


def _renamed(old: model.Struct | model.Enum, new: model.Struct | model.Enum) -> Change:
    kind = _kind(new)
    if old.name == new.name:
        rule, was, now = "TYPE_MOVED", old.group, new.group
        text = f"{kind} '{new.name}' moved from group '{old.group}' to '{new.group}'"
    else:
        rule, was, now = f"{kind.upper()}_RENAMED", old.name, new.name
        text = f"{kind} '{new.name}' was called '{old.name}'"
    return Change(
        rule,
        f"{new.group}.{new.name}",
        new.place,
        old.place,
        text,
        was,
        now,
        f"{old.group}.{old.name}",
        source=True,
    )


def _kind(named: model.Struct | model.Enum) -> str:
    return "struct" if isinstance(named, model.Struct) else "enum"


def _named(schema: model.Schema) -> _Named:
    named: dict[_Ref, model.Struct | model.Enum] = {}
    for group in schema.groups.values():
        named |= {StructType(each.group, each.name): each for each in group.structs}
        named |= {EnumType(each.group, each.name): each for each in group.enums}
    return named

"""Structs and enums by their names: what the generated code calls them, which no peer sees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from msgen.codegen.schema import model
from msgen.codegen.schema.errors import Place
from msgen.codegen.schema.model import EnumType, StructType
from msgen.codegen.schema.rule import NOTE, WARNING

from .change import Change, ChangeRule, Node
from .types import Held
from .walk import Walk

_Ref: TypeAlias = StructType | EnumType
_Type: TypeAlias = model.Struct | model.Enum


def diff_type_names(found: Walk) -> Iterator[tuple[Node | None, Change]]:
    """Yield which structs and enums are new, gone, renamed, moved, or stand for one another.

    Each comes with the node that leads to it from the messages of both versions, if one does.
    """
    homes = found.homes
    olds, news = _named(found.old), _named(found.new)
    kept = {
        ref: same
        for ref in olds
        if ref.group in homes
        and (same := type(ref)(homes[ref.group], ref.name)) in news
    }
    gone = {ref: olds[ref] for ref in olds if ref not in kept}
    fresh = {ref: news[ref] for ref in news if ref not in kept.values()}
    told: set[_Ref] = set()
    for node, sites in found.met.items():
        old, new = node.old, node.new
        if not isinstance(old, _Ref) or not isinstance(new, _Ref):
            continue
        if old in gone and new in fresh:
            told |= {old, new}
            yield node, type_renamed(gone[old], fresh[new])
        elif kept.get(old) != new:
            yield from ((node, type_replaced(held, old, new)) for held in sites)
    # What no message of both versions led to.
    left = [ref for ref in fresh if ref not in told]
    for ref in [each for each in gone if each not in told]:
        twins = [
            each for each in left if type(each) is type(ref) and each.name == ref.name
        ]
        if len(twins) == 1:
            told |= {ref, twins[0]}
            yield None, type_renamed(gone[ref], fresh[twins[0]])
    for ref, declared in gone.items():
        if ref not in told and ref.group in homes:
            place = found.new.groups[homes[ref.group]].place
            yield None, type_removed(declared, place)
    for ref, declared in fresh.items():
        if ref not in told and ref.group in homes.values():
            yield None, type_added(declared)


def _named(schema: model.Schema) -> Mapping[_Ref, _Type]:
    named: dict[_Ref, _Type] = {}
    for group in schema.groups.values():
        named |= {StructType(each.group, each.name): each for each in group.structs}
        named |= {EnumType(each.group, each.name): each for each in group.enums}
    return named


def _kind(named: _Type) -> str:
    return "struct" if isinstance(named, model.Struct) else "enum"


def _for_both_kinds(
    event: str, purpose: str, why: str, instead: str, **row: Any
) -> Iterator[ChangeRule]:
    """Yield two rows, `STRUCT_...` and `ENUM_...`, whose `why` says `{kind}` for what it is of."""
    for kind, a_kind in (("Struct", "a struct"), ("Enum", "an enum")):
        told = (f"{a_kind} {purpose}", why.format(kind=kind), instead)
        yield ChangeRule(f"{kind.upper()}_{event}", *told, **row)


def type_added(new: _Type) -> Change:
    rule = STRUCT_ADDED if isinstance(new, model.Struct) else ENUM_ADDED
    text = f"{_kind(new)} '{new.name}' is new"
    return Change(rule, _dotted(new), new.place, None, text, "", new.name)


STRUCT_ADDED, ENUM_ADDED = _for_both_kinds(
    "ADDED",
    "is new",
    "By itself it is on no wire.",
    "nothing to do.",
    finder=type_added,
    severity=NOTE,
    harmless=NOTE,
)


def type_removed(old: _Type, place: Place) -> Change:
    rule = STRUCT_REMOVED if isinstance(old, model.Struct) else ENUM_REMOVED
    text, name = f"{_kind(old)} '{old.name}' is gone", _dotted(old)
    names = (old.name, "", name)
    return Change(rule, name, place, old.place, text, *names, source=True)


STRUCT_REMOVED, ENUM_REMOVED = _for_both_kinds(
    "REMOVED",
    "is gone",
    "Code that uses the class fails. Fields that held it are told by rules of their own.",
    "remove its uses in code with it.",
    finder=type_removed,
    severity=WARNING,
)


def type_renamed(old: _Type, new: _Type) -> Change:
    rule = STRUCT_RENAMED if isinstance(new, model.Struct) else ENUM_RENAMED
    names = (old.name, new.name)
    text = f"{_kind(new)} '{new.name}' was called '{old.name}'"
    if old.name == new.name:
        rule, names = TYPE_MOVED, (old.group, new.group)
        text = (
            f"{_kind(new)} '{new.name}' moved from group '{old.group}' to '{new.group}'"
        )
    subjects = (*names, _dotted(old))
    return Change(
        rule, _dotted(new), new.place, old.place, text, *subjects, source=True
    )


def _dotted(named: _Type) -> str:
    return f"{named.group}.{named.name}"


STRUCT_RENAMED, ENUM_RENAMED = _for_both_kinds(
    "RENAMED",
    "has another name",
    "{kind}s count by content, so no peer sees the name. Code that uses the class has to use "
    "its new name.",
    "change the code with it.",
    finder=type_renamed,
    severity=WARNING,
)
TYPE_MOVED = ChangeRule(
    "TYPE_MOVED",
    "a struct or enum is declared in another group",
    "Structs and enums count by content, so no peer sees the move. Code that imports the class "
    "from its old module has to import it from the new one.",
    "change the imports with it.",
    finder=type_renamed,
    severity=NOTE,
    harmless=NOTE,
)


def type_replaced(held: Held, old: _Ref, new: _Ref) -> Change:
    kind = "struct" if isinstance(new, StructType) else "enum"
    names = (old.name, new.name)
    text = f"{held.field.what} holds {kind} '{new.name}', held '{old.name}'"
    return held.field.change(TYPE_REPLACED, text, *names, "type", source=True)


TYPE_REPLACED = ChangeRule(
    "TYPE_REPLACED",
    "a field holds another struct or enum",
    "Structs and enums count by content: where that is the same, no peer sees a difference, "
    "and where it is not, rules about the content tell. Code has to make the other class.",
    "change the code with it.",
    finder=type_replaced,
    severity=WARNING,
)

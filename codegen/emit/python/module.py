"""One module being written: how it spells classes, functions and tables, its own and its siblings'."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from msgen.codegen.emit.facts import Facts
from msgen.codegen.schema import model
from msgen.codegen.schema.names import base_name, snake_case, union_name

from .imports import Names

# Names that a local variable must not have, since emitted functions use them or readers and linters
# would stumble: builtins and arguments. Imported names make way by themselves. They are listed
# and not computed, so that the text does not depend on the Python that runs the generator; a test
# compares the list with what emitted code uses.
_BUILTINS = """
    abs aiter all anext any ascii bin bool breakpoint bytearray bytes callable chr
    classmethod compile complex copyright credits delattr dict dir divmod enumerate eval
    exec exit filter float format frozenset getattr globals hasattr hash help hex id
    input int isinstance issubclass iter len license list locals map max memoryview min
    next object oct open ord pow print property quit range repr reversed round set
    setattr slice sorted staticmethod str sum super tuple type vars zip
"""
_ARGUMENTS = "depth frames msg slots struct tag value"
USED_NAMES = frozenset([*_BUILTINS.split(), *_ARGUMENTS.split()])

_SHAPED_NAME = re.compile(r"(item|key|element)(_[0-9]+)?\Z|.*_(to|from)_slots\Z")
"""Loop variables, and functions of records."""


@cache
def local_name(field: str) -> str:
    """The local variable that holds a field's value in emitted functions."""
    is_used = field in USED_NAMES or _SHAPED_NAME.match(field)
    return f"{field}_" if is_used else field


@dataclass
class Module:
    """A group's module: the facts on its schema, its names and what views have asked for."""

    facts: Facts
    group: model.Group
    names: Names = field(init=False)
    _tables: dict[tuple[str, tuple[model.MessageType, ...]], str] = field(
        default_factory=dict
    )
    _used: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.schema = self.facts.schema
        self.names = Names(self._taken_names())

    def _taken_names(self) -> frozenset[str]:
        """Names that the schema gave to things which stand in this module."""
        imported = [self.schema.groups[name] for name, _ in self.group.imports]
        names = {base_name(self.group.name), union_name(self.group.name)}
        for group in (self.group, *imported):
            names |= {each.name for each in group.enums}
            names |= {each.name for each in (*group.structs, *group.messages)}
        names |= {f.name for record in self.group.records for f in record.fields}
        return frozenset(names)

    def unique(self, name: str) -> str:
        """Return a module-level name that nothing else has: the name itself, or one numbered."""
        candidate, number = name, 2
        while candidate in self._used:
            candidate, number = f"{name}_{number}", number + 1
        self._used.add(candidate)
        return candidate

    def class_name(
        self, ref: model.StructType | model.EnumType | model.MessageType
    ) -> str:
        """Spell a class, importing it where another group declares it."""
        if ref.group == self.group.name:
            return ref.name
        if ref.group in {name for name, _ in self.group.imports}:
            return self.names.sibling(ref.group, ref.name)
        # Only a default reaches further than the imports; its names may be taken here.
        return self.names.sibling(ref.group, ref.name, f"_{ref.group}_{ref.name}_")

    def function(self, verb: str, ref: model.StructType | model.MessageType) -> str:
        """Spell a record's encoder or decoder: `user_msg_to_slots`."""
        way = "to" if verb == "encode" else "from"
        return self._spell(ref.group, f"{snake_case(ref.name)}_{way}_slots")

    def members_by_number(self, ref: model.EnumType) -> str:
        """Spell the dict from numbers to members of an enum."""
        return self._spell(ref.group, f"{snake_case(ref.name).upper()}_BY_NUMBER")

    def records(self, group: str) -> str:
        """Spell the description table of a group."""
        return self._spell(group, f"{group.upper()}_RECORDS")

    def _spell(self, group: str, name: str) -> str:
        return name if group == self.group.name else self.names.sibling(group, name)

    def dtype(self, name: str) -> str:
        return f"{self.names['torch']}.{name}"

    @property
    def all_messages(self) -> tuple[model.MessageType, ...]:
        return tuple(each.type for each in self.group.live_messages)

    def dispatch(self, verb: str, refs: tuple[model.MessageType, ...]) -> str:
        """Name the table that leads from a message's class or tag to its function."""
        if (verb, refs) not in self._tables:
            items = (
                each.type for each in self.group.live_messages if not each.is_batch
            )
            if refs == self.all_messages:
                what = ""
            elif refs == tuple(items):
                what = "BATCH_ITEM_"
            else:
                what = "_OR_".join(snake_case(ref.name).upper() for ref in refs[:3])
                what += "_OR_OTHERS_" if len(refs) > 3 else "_"
            self._tables[verb, refs] = self.unique(f"_{what}{verb.upper()}RS")
        return self._tables[verb, refs]

    def dispatch_tables(self) -> Iterator[tuple[str, str, list[str]]]:
        """Yield the tables that were asked for: name, what the runtime calls its type, entries."""
        for (verb, refs), name in self._tables.items():
            yield (
                name,
                f"{verb.capitalize()}rs",
                [self._entry(verb, ref) for ref in refs],
            )

    def _entry(self, verb: str, ref: model.MessageType) -> str:
        key = ref.name if verb == "encode" else self.schema.message(ref).tag
        return f"{key}: {self.function(verb, ref)}"

"""What the emitters of one module share: the schema, the module's names, and facts on records."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from msgen.codegen.history.layouts import Layouts
from msgen.codegen.schema import model
from msgen.codegen.schema.fingerprint import Fingerprints
from msgen.codegen.schema.names import snake_case
from msgen.codegen.schema.recursion import recursive_records

from .imports import ModuleNames

RUNTIME = "msgen.runtime.codec"

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
USED_NAMES = frozenset(
    [
        *_BUILTINS.split(),
        "depth",
        "frames",
        "msg",
        "slots",
        "struct",
        "tag",
        "value",
    ]
)

_LOOP_NAME = re.compile(r"(item|key|element)(_[0-9]+)?\Z")


@dataclass(frozen=True)
class SchemaFacts:
    """What the emitters ask about records, computed once for all modules."""

    recursive: frozenset[model.RecordKey]
    """Records that can stand inside themselves."""
    with_frames: frozenset[model.RecordKey]
    """Records with a tensor or bytes somewhere inside, whose functions need the frames."""
    fingerprints: Fingerprints
    layouts: Layouts
    """Layouts that were released before, so that modules can say how they differ."""

    @classmethod
    def of(cls, schema: model.Schema, layouts: Layouts) -> SchemaFacts:
        return cls(
            recursive_records(schema),
            _records_with_payloads(schema),
            Fingerprints(schema),
            layouts,
        )


@dataclass(frozen=True)
class ModuleContext:
    """One module being written."""

    schema: model.Schema
    facts: SchemaFacts
    group: model.Group
    names: ModuleNames
    message_sets: dict[str, tuple[str, tuple[model.MessageType, ...]]] = field(
        default_factory=dict
    )
    """Names of dispatch tables to the verb and the messages they are for."""
    _used: set[str] = field(default_factory=set)

    def unique(self, name: str) -> str:
        """Return a module-level name that nothing else has: the name itself, or one numbered."""
        candidate, number = name, 2
        while candidate in self._used:
            candidate, number = f"{name}_{number}", number + 1
        self._used.add(candidate)
        return candidate

    def message_set(self, verb: str, refs: tuple[model.MessageType, ...]) -> str:
        """Name the table that leads from a message's class or tag to its function."""
        for name, known in self.message_sets.items():
            if known == (verb, refs):
                return name
        messages = self.group.live_messages
        if refs == self._refs(messages):
            what = ""
        elif refs == self._refs(each for each in messages if not each.is_batch):
            what = "BATCH_ITEM_"
        else:
            what = "_OR_".join(snake_case(ref.name).upper() for ref in refs[:3])
            what += "_OR_OTHERS_" if len(refs) > 3 else "_"
        name = self.unique(f"_{what}{verb.upper()}RS")
        self.message_sets[name] = (verb, refs)
        return name

    @property
    def all_messages(self) -> tuple[model.MessageType, ...]:
        return self._refs(self.group.live_messages)

    def _refs(self, messages: Iterable[model.Message]) -> tuple[model.MessageType, ...]:
        return tuple(each.type for each in messages)

    @staticmethod
    def snake(record: model.Record) -> str:
        return snake_case(record.name)

    def is_recursive(self, record: model.Record) -> bool:
        return (record.group, record.name) in self.facts.recursive

    @cached_property
    def has_deep_messages(self) -> bool:
        """Whether the group's message functions carry a depth: one of them is recursive."""
        return any(self.is_recursive(message) for message in self.group.live_messages)

    def needs_frames(self, record: model.Record) -> bool:
        return (
            isinstance(record, model.Message)
            or (record.group, record.name) in self.facts.with_frames
        )

    def has_depth(self, record: model.Record) -> bool:
        if isinstance(record, model.Message):
            return self.has_deep_messages
        return self.is_recursive(record)

    def wire(self, name: str) -> str:
        return self.names.use(f"{RUNTIME}.wire", name)

    def frames(self, name: str) -> str:
        return self.names.use(f"{RUNTIME}.frames", name)

    def tensors(self, name: str) -> str:
        return self.names.use(f"{RUNTIME}.tensors", name)

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

    def is_declared_before(self, ref: model.StructType, record: model.Record) -> bool:
        """Whether a struct's class exists when a record's class body runs."""
        if ref.group != self.group.name or isinstance(record, model.Message):
            return True
        order = [struct.name for struct in self.group.structs]
        return order.index(ref.name) < order.index(record.name)

    def function(self, verb: str, ref: model.StructType | model.MessageType) -> str:
        """Spell a record's encoder or decoder: `_encode_user_msg`."""
        name = f"_{verb}_{snake_case(ref.name)}"
        if ref.group != self.group.name:
            return self.names.sibling(ref.group, name)
        return name

    def members_by_number(self, ref: model.EnumType) -> str:
        """Spell the dict from numbers to members of an enum."""
        name = f"_{snake_case(ref.name).upper()}_BY_NUMBER"
        if ref.group != self.group.name:
            return self.names.sibling(ref.group, name)
        return name

    def dtype(self, name: str) -> str:
        return f"{self.names.module('torch')}.{name}"


def local_name(field: str) -> str:
    """The local variable that holds a field's value in emitted functions."""
    return f"{field}_" if field in USED_NAMES or _LOOP_NAME.match(field) else field


def _records_with_payloads(schema: model.Schema) -> frozenset[model.RecordKey]:
    """Follow references backwards from the records that hold tensors or bytes themselves."""
    holders: dict[model.RecordKey, list[model.RecordKey]] = {}
    found: list[model.RecordKey] = []
    for group in schema.groups.values():
        for record in group.records:
            key = (group.name, record.name)
            parts = [
                part for field in record.live_fields for part in model.walk(field.type)
            ]
            if any(
                isinstance(part, (model.TensorType, model.BytesType)) for part in parts
            ):
                found.append(key)
            for part in parts:
                if isinstance(part, (model.StructType, model.MessageType)):
                    holders.setdefault((part.group, part.name), []).append(key)
    seen = set(found)
    while found:
        more = [key for key in holders.get(found.pop(), []) if key not in seen]
        seen.update(more)
        found += more
    return frozenset(seen)

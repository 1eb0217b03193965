"""What the emitters of one module share: the schema, the module's names, and facts on records."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from . import model
from .model import Type
from .modulenames import ModuleNames
from .names import snake_case
from .recursion import recursive_records

RUNTIME = "msgen.runtime"

# Names that emitted functions use and a field's local variable must therefore not have. They are
# listed and not computed, so that the text does not depend on the Python that runs the generator;
# a test compares the list with what emitted code uses.
USED_NAMES = frozenset(
    [
        "any",
        "as_bool",
        "as_float",
        "as_int",
        "bool",
        "bytes",
        "check_plain",
        "check_symbols",
        "decode_any_tensor",
        "decode_bytes",
        "decode_tensor",
        "decode_vector",
        "depth",
        "dict",
        "element",
        "encode_any_tensor",
        "encode_bytes",
        "encode_tensor",
        "encode_vector",
        "fit",
        "float",
        "frames",
        "int",
        "isfinite",
        "isinstance",
        "item",
        "key",
        "l",
        "len",
        "list",
        "msg",
        "slots",
        "str",
        "struct",
        "torch",
        "tuple",
        "type",
        "value",
        "wire",
    ]
)


_LOOP_NAME = re.compile(r"(item|key|element)(_[0-9]+)?\Z")


@dataclass(frozen=True)
class ModuleContext:
    """One module being written."""

    schema: model.Schema
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
        return tuple(model.MessageType(self.group.name, each.name) for each in messages)

    @staticmethod
    def snake(record: model.Record) -> str:
        return snake_case(record.name)

    @cached_property
    def recursive(self) -> frozenset[model.RecordKey]:
        return recursive_records(self.schema)

    def is_recursive(self, record: model.Record) -> bool:
        return (record.group, record.name) in self.recursive

    @cached_property
    def has_deep_messages(self) -> bool:
        """Whether the group's message functions carry a depth: one of them is recursive."""
        return any(self.is_recursive(message) for message in self.group.live_messages)

    @cached_property
    def _with_frames(self) -> frozenset[model.RecordKey]:
        """Records with a tensor or bytes somewhere inside, whose functions need the frames."""
        records = {
            (record.group, record.name): record
            for group in self.schema.groups.values()
            for record in group.records
        }
        found: set[model.RecordKey] = set()
        while True:
            more = {
                key
                for key, record in records.items()
                if key not in found
                and any(_holds(f.type, found) for f in record.live_fields)
            }
            if not more:
                return frozenset(found)
            found |= more

    def needs_frames(self, record: model.Record) -> bool:
        return (
            isinstance(record, model.Message)
            or (record.group, record.name) in self._with_frames
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
        if ref.group != self.group.name:
            return self.names.sibling(ref.group, ref.name)
        return ref.name

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


def _holds(type_: Type, records: set[model.RecordKey]) -> bool:
    return any(
        isinstance(part, (model.TensorType, model.BytesType))
        or (
            isinstance(part, (model.StructType, model.MessageType))
            and (part.group, part.name) in records
        )
        for part in model.walk(type_)
    )

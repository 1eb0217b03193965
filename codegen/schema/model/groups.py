"""What a schema declares: groups with their messages, structs and enums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from msgen.codegen.schema.errors import KeyPlaces, Place

from .types import EnumType, MessageType, StructType, Type
from .values import Default


@dataclass(frozen=True)
class Field:
    name: str
    place: Place
    type: Type
    doc: str = ""
    default: Default | None = None
    since: int = 1
    deprecated: bool = False
    was: str | None = None
    removed: bool = False
    keys: KeyPlaces = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class Struct:
    group: str
    name: str
    place: Place
    doc: str
    fields: tuple[Field, ...]
    keys: KeyPlaces = field(default=(), compare=False, repr=False, kw_only=True)

    @property
    def type(self) -> StructType | MessageType:
        return StructType(self.group, self.name)

    @property
    def live_fields(self) -> tuple[Field, ...]:
        """The fields that a Python class has: all but the removed ones."""
        return tuple(each for each in self.fields if not each.removed)


@dataclass(frozen=True)
class Message(Struct):
    tag: int = 0
    since: int = 1
    deprecated: bool = False
    was: str | None = None
    removed: bool = False
    is_batch: bool = False

    @property
    def type(self) -> MessageType:
        return MessageType(self.group, self.name)


Record: TypeAlias = Struct
"""What has fields: a struct, or a message, which is a struct with a tag."""

RecordKey: TypeAlias = tuple[str, str]
"""Group and name of a record."""


@dataclass(frozen=True)
class EnumMember:
    name: str
    place: Place
    number: int
    doc: str = ""
    since: int = 1
    deprecated: bool = False
    was: str | None = None
    keys: KeyPlaces = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class Enum:
    group: str
    name: str
    place: Place
    doc: str
    members: tuple[EnumMember, ...]
    unknown: str | None
    """The member that receives numbers which this build does not know."""
    keys: KeyPlaces = field(default=(), compare=False, repr=False)

    @property
    def type(self) -> EnumType:
        return EnumType(self.group, self.name)


@dataclass(frozen=True)
class Group:
    name: str
    place: Place
    doc: str
    version: int
    receiver: str | None
    """The process that reads the messages; None for a group of shared types only."""
    senders: tuple[str, ...]
    imports: tuple[tuple[str, Place], ...]
    enums: tuple[Enum, ...]
    structs: tuple[Struct, ...]
    messages: tuple[Message, ...]
    """Every message in file order, the batch last; removed ones included."""
    keys: KeyPlaces = field(default=(), compare=False, repr=False)

    @property
    def live_messages(self) -> tuple[Message, ...]:
        return tuple(each for each in self.messages if not each.removed)

    @property
    def records(self) -> tuple[Struct, ...]:
        """Structs and messages: everything that has fields and a class."""
        return (*self.structs, *self.live_messages)


@dataclass(frozen=True)
class Schema:
    """All groups of a schema folder, by name, in order of name."""

    name: str
    """The folder's own name, as it stands in the header of generated files."""
    groups: Mapping[str, Group] = field(default_factory=dict)

    @cached_property
    def _structs(self) -> dict[tuple[str, str], Struct]:
        return {(g.name, s.name): s for g in self.groups.values() for s in g.structs}

    @cached_property
    def _messages(self) -> dict[tuple[str, str], Message]:
        return {(g.name, m.name): m for g in self.groups.values() for m in g.messages}

    @cached_property
    def _enums(self) -> dict[tuple[str, str], Enum]:
        return {(g.name, e.name): e for g in self.groups.values() for e in g.enums}

    def record(self, ref: StructType | MessageType) -> Struct:
        """Return the struct or message that a type names."""
        found = self._messages if isinstance(ref, MessageType) else self._structs
        return found[ref.group, ref.name]

    def message(self, ref: MessageType) -> Message:
        return self._messages[ref.group, ref.name]

    def enum(self, ref: EnumType) -> Enum:
        return self._enums[ref.group, ref.name]

"""Facts on a schema's records that every language's emitter asks, computed once for all modules."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from msgen.codegen.history.layouts import Layouts
from msgen.codegen.schema import model
from msgen.codegen.schema.fingerprint import Fingerprints
from msgen.codegen.schema.recursion import recursive_records


@dataclass(frozen=True)
class Facts:
    """What can be said about the records of a schema.

    Attributes:
        recursive: records that can stand inside themselves.
        with_payloads: records with a tensor or bytes somewhere inside, which frames can hold.
        layouts: those that were released before, so that modules can say how they differ.
    """

    schema: model.Schema
    recursive: frozenset[model.RecordKey]
    with_payloads: frozenset[model.RecordKey]
    fingerprints: Fingerprints
    layouts: Layouts

    @classmethod
    def of(cls, schema: model.Schema, layouts: Layouts) -> Facts:
        return cls(
            schema,
            recursive_records(schema),
            _records_with_payloads(schema),
            Fingerprints(schema),
            layouts,
        )

    def is_recursive(self, record: model.Record) -> bool:
        return (record.group, record.name) in self.recursive

    def needs_frames(self, record: model.Record) -> bool:
        """Whether a record's functions are given frames: all functions of messages look alike."""
        key = (record.group, record.name)
        return isinstance(record, model.Message) or key in self.with_payloads

    def has_depth(self, record: model.Record) -> bool:
        """Whether a record's functions are given a depth: those of messages if one is recursive."""
        if not isinstance(record, model.Message):
            return self.is_recursive(record)
        messages = self.schema.groups[record.group].live_messages
        return any(self.is_recursive(message) for message in messages)


def groups_of_structs(group: model.Group) -> list[str]:
    """Return the other groups whose structs a group's fields name."""
    parts = (
        part
        for record in group.records
        for field in record.fields
        for part in model.walk(field.type)
    )
    named = {part.group for part in parts if isinstance(part, model.StructType)}
    return sorted(named - {group.name})


def has_tensors(record: model.Record) -> bool:
    """Whether a record's fields hold tensors, not counting those inside of structs."""
    return any(
        isinstance(part, model.TensorType)
        for field in record.live_fields
        for part in model.walk(field.type)
    )


def without_nil(type_: model.Type) -> model.Type:
    """Return what a nullable type holds, or the type itself."""
    return type_.item if isinstance(type_, model.NullableType) else type_


def takes_nil(type_: model.Type) -> bool:
    """Whether nil is a value of a type, and not the sign for a field's default."""
    return isinstance(type_, (model.NullableType, model.AnyType))


def _records_with_payloads(schema: model.Schema) -> frozenset[model.RecordKey]:
    """Follow references backwards from the records that hold tensors or bytes themselves."""
    holders: defaultdict[model.RecordKey, list[model.RecordKey]] = defaultdict(list)
    found: list[model.RecordKey] = []
    for group in schema.groups.values():
        for record in group.records:
            key = (group.name, record.name)
            for part in {p for f in record.live_fields for p in model.walk(f.type)}:
                if isinstance(part, (model.TensorType, model.BytesType)):
                    found.append(key)
                elif isinstance(part, (model.StructType, model.MessageType)):
                    holders[part.group, part.name].append(key)
    seen = set(found)
    while found:
        more = [key for key in holders[found.pop()] if key not in seen]
        seen.update(more)
        found += more
    return frozenset(seen)

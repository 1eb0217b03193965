"""Fingerprints: a hash of what decides the wire bytes of a group, and of nothing else.

Group, message tags and names, field names, order and types, enum members and numbers count; docs,
defaults, limits, dimension symbols and anything of `since: 2` or later do not. Structs, enums and
messages inside of others count by content. `removed` keeps an entry, `was` stands in for the name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any, TypeAlias

from . import model
from .graph import components
from .model import Type

_Ref: TypeAlias = model.StructType | model.MessageType


class Fingerprints:
    """The fingerprints of a schema's groups; what they share is digested once."""

    def __init__(self, schema: model.Schema) -> None:
        self._schema = schema
        self._digests: dict[_Ref, str] = {}
        """Each struct and message to the digest of its content, which stands for it in others."""
        self._forms: dict[Type, Any] = {}
        edges = {
            record.type: _references(record)
            for group in schema.groups.values()
            for record in group.records
        }
        for component in components(edges):
            self._digest_together(component, edges)

    def of(self, group: model.Group) -> str:
        """Return the SHA-256 of a group's canonical form, as 64 hex digits."""
        return _digest(self.canonical(group))

    def canonical(self, group: model.Group) -> dict[str, Any]:
        """Return the canonical form of a group, of JSON types only."""
        messages = sorted(
            (each for each in group.messages if each.since == 1), key=lambda m: m.tag
        )
        return {
            "format": 1,
            "group": group.name,
            "messages": [
                [message.tag, message.was or message.name, self._fields(message)]
                for message in messages
            ],
        }

    def record(self, digest: str) -> Any:
        """Return the canonical fields of a struct or message, by the digest that stands for it."""
        return self._by_digest[digest]

    @cached_property
    def _by_digest(self) -> dict[str, Any]:
        """The fields of every struct and message, by digest; those alike are one."""
        return {
            digest: self._fields(self._schema.record(ref))
            for ref, digest in self._digests.items()
        }

    def _fields(self, record: model.Record) -> list[Any] | str:
        if isinstance(record, model.Message) and record.is_batch:
            return "batch"  # of whatever messages there are: new ones may come
        return [
            [each.was or each.name, self._type(each.type)]
            for each in record.fields
            if each.since == 1
        ]

    def _digest_together(
        self, records: list[_Ref], edges: Mapping[_Ref, list[_Ref]]
    ) -> None:
        """Digest records that hold one another, or one that holds no such.

        Those that do are told apart in rounds: at first all are alike, then by their content
        where the others are named by the round before. Rounds that split no class further show
        how many classes there are; twice as many rounds tell any two sets of so many apart.
        """
        recursive = len(records) > 1 or records[0] in edges[records[0]]
        self._digests |= dict.fromkeys(records, "")
        classes = self._classes(records) if recursive else 0
        self._digests |= dict.fromkeys(records, "")
        for _ in range(2 * classes + 1):
            self._round(records)

    def _round(self, records: list[_Ref]) -> None:
        self._digests |= {
            each: _digest(self._fields(self._schema.record(each))) for each in records
        }

    def _classes(self, records: list[_Ref]) -> int:
        """Count the records of different content among those that hold one another."""
        count = 0
        while True:
            self._round(records)
            found = len({self._digests[each] for each in records})
            if found == count:
                return count
            count = found

    def _type(self, type_: Type) -> Any:
        if _holds_records(type_):
            return self._form(type_)  # which changes with the digests
        found = self._forms.get(type_)
        if found is None:
            found = self._forms[type_] = self._form(type_)
        return found

    def _form(self, type_: Type) -> Any:
        if isinstance(type_, model.StructType):
            return ["struct", self._digests[type_]]
        if isinstance(type_, model.MessageType):
            return ["message", self._schema.message(type_).tag, self._digests[type_]]
        if isinstance(type_, model.EnumType):
            members = self._schema.enum(type_).members
            numbered = [[m.number, m.was or m.name] for m in members if m.since == 1]
            return ["enum", sorted(numbered)]
        if isinstance(type_, model.UnionType):
            options = [self._type(each) for each in type_.options if self._counts(each)]
            if len(options) == 1:
                return options[0]
            return ["union", *sorted(options, key=_digest)]
        if isinstance(type_, model.TensorType):
            if type_.dims is None:
                return ["tensor", type_.dtype, "*"]
            sizes = [dim if isinstance(dim, int) else "_" for dim in type_.dims]
            return ["tensor", type_.dtype, sizes]
        if isinstance(type_, model.IntType):
            return type_.width
        if isinstance(type_, model.FloatType):
            return f"f{type_.bits}"
        parts = [self._type(child) for child in model.children(type_)]
        name = type(type_).__name__.removesuffix("Type").lower()
        return [name, *parts] if parts else name

    def _counts(self, option: Type) -> bool:
        return (
            not isinstance(option, model.MessageType)
            or self._schema.message(option).since == 1
        )


def _digest(value: Any) -> str:
    text = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def _holds_records(type_: Type) -> bool:
    return any(isinstance(part, _Ref) for part in model.walk(type_))


def _references(record: model.Record) -> list[_Ref]:
    """Return the structs and messages that count in the content of a record."""
    if isinstance(record, model.Message) and record.is_batch:
        return []
    return [
        part
        for field in record.fields
        if field.since == 1
        for part in model.walk(field.type)
        if isinstance(part, (model.StructType, model.MessageType))
    ]

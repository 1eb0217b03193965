"""Fingerprints: a hash of what decides the wire bytes of a group, and of nothing else.

Group, message tags and names, field names, order and types, enum members and numbers count; docs,
defaults, limits, dimension symbols and anything of `since: 2` or later do not. Structs and enums
count by content. `removed` keeps an entry, `was` stands in for the name.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from . import model
from .model import Type


def fingerprint(schema: model.Schema, group: model.Group) -> str:
    """Return the SHA-256 of a group's canonical form, as 64 hex digits."""
    return _digest(canonical(schema, group))


def canonical(schema: model.Schema, group: model.Group) -> dict[str, Any]:
    """Return the canonical form of a group, of JSON types only."""
    describe = _Canonical(schema)
    messages = sorted(
        (each for each in group.messages if each.since == 1), key=lambda m: m.tag
    )
    return {
        "format": 1,
        "group": group.name,
        "messages": [
            [
                message.tag,
                message.was or message.name,
                "batch" if message.is_batch else describe.fields(message),
            ]
            for message in messages
        ],
    }


def _digest(value: Any) -> str:
    text = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class _Canonical:
    schema: model.Schema
    _open: list[model.StructType] = field(default_factory=list)
    _digests: dict[model.StructType, str] = field(default_factory=dict)

    def fields(self, record: model.Record) -> list[Any]:
        return [
            [each.was or each.name, self._type(each.type)]
            for each in record.fields
            if each.since == 1
        ]

    def _type(self, type_: Type) -> Any:
        if isinstance(type_, model.StructType):
            return self._struct(type_)
        if isinstance(type_, model.EnumType):
            members = [
                each for each in self.schema.enum(type_).members if each.since == 1
            ]
            return [
                "enum",
                sorted([each.number, each.was or each.name] for each in members),
            ]
        if isinstance(type_, model.MessageType):
            return ["message", self.schema.message(type_).tag]
        if isinstance(type_, model.UnionType):
            options = [self._type(each) for each in type_.options if self._counts(each)]
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
            or self.schema.message(option).since == 1
        )

    def _struct(self, ref: model.StructType) -> Any:
        """Describe a struct by a digest, or by how many structs up it was opened."""
        if ref in self._open:
            return ["up", len(self._open) - self._open.index(ref)]
        if ref not in self._digests:
            self._open.append(ref)
            content = self.fields(self.schema.record(ref))
            self._open.pop()
            digest = _digest(content)
            if _mentions_up(content):
                return ["struct", content]
            self._digests[ref] = digest
        return ["struct", self._digests[ref]]


def _mentions_up(content: Any) -> bool:
    if isinstance(content, list):
        return content[:1] == ["up"] or any(_mentions_up(each) for each in content)
    return False

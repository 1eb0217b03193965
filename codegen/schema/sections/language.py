"""The keys of the schema language: one table, from which the reader and the JSON Schema both come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Key:
    """One key of a mapping.

    ``shape`` is `name`, `names`, `text`, `type`, `count` (an integer), `flag` (a boolean), `value`
    (anything), `path` (names with dots between them), `date`, the name of a section, `map SECTION`
    (names to sections), `short SECTION` (as `map`, where a scalar stands for the section's first
    key), or `list SECTION`.
    """

    shape: str
    doc: str
    example: str = ""
    """What it may hold, for the error that misses it; a key without one may be absent."""
    least: int = 1
    most: int = 2**31 - 1

    @property
    def required(self) -> bool:
        return bool(self.example)


_DOC = Key("text", "What it is for, in a sentence or more; becomes the docstring.")
_FIELDS = Key("short field", "Its fields; their order is their order on the wire.")
_TAG = Key(
    "count", "Its number, unique in the group.", least=0, most=255, example="<0 to 255>"
)
_EVOLUTION = {
    "since": Key("count", "The group version that added it; 1 if absent."),
    "deprecated": Key("flag", "Still works, but new code should not use it."),
    "was": Key("name", "Its name before a deliberate rename; keeps the fingerprint."),
}

SECTIONS: dict[str, dict[str, Key]] = {
    "group": {
        "group": Key(
            "name", "The group's name, equal to the file's name.", example="<name>"
        ),
        "receiver": Key("name", "The process that reads these messages."),
        "senders": Key("names", "The processes that write them."),
        "doc": _DOC,
        "version": Key("count", "The group's version; raise it with every `since`."),
        "imports": Key("names", "Groups whose structs and enums are used here."),
        "batch": Key(
            "batch", "Adds a message whose field `data` lists the group's others."
        ),
        "messages": Key("map message", "The messages, by name."),
        "structs": Key("map struct", "Types with fields, by name."),
        "enums": Key("map enum", "Types with numbered members, by name."),
    },
    "batch": {
        "name": Key("name", "The batch message's name.", example="<Name>"),
        "tag": _TAG,
        "doc": _DOC,
        **_EVOLUTION,
    },
    "message": {
        "tag": _TAG,
        "doc": _DOC,
        "fields": _FIELDS,
        **_EVOLUTION,
        "removed": Key("flag", "Gone, but its tag stays reserved."),
    },
    "struct": {
        "doc": _DOC,
        "fields": _FIELDS,
    },
    "field": {
        "type": Key("type", "The field's type.", example="int"),
        "doc": _DOC,
        "default": Key("value", "The value where none is given."),
        **_EVOLUTION,
        "removed": Key("flag", "Gone, but its slot stays, written as nil."),
        "max_len": Key(
            "count", "Most characters, bytes, items or tensor elements.", least=0
        ),
        "finite": Key("flag", "Refuses nan and infinities."),
        "device": Key(
            "name", "`worker`: the receiving worker wants it on its own device."
        ),
    },
    "enum": {
        "values": Key("short member", "Member names to numbers.", example="{unset: 0}"),
        "doc": _DOC,
        "unknown": Key(
            "name", "The member that receives numbers this build does not know."
        ),
    },
    "member": {
        "value": Key(
            "count",
            "The member's number.",
            least=-(2**31),
            most=2**31 - 1,
            example="<number>",
        ),
        "doc": _DOC,
        **_EVOLUTION,
    },
}

SETTINGS: dict[str, dict[str, Key]] = {
    "settings": {
        "waivers": Key("list waiver", "Breaks that were decided on."),
    },
    "waiver": {
        "rule": Key("name", "The finding's rule.", example="INT_CHANGED"),
        "place": Key(
            "path",
            "What it is about, by its dotted name.",
            example="backend.UserMsg.uid",
        ),
        "reason": Key("text", "Why it is wanted.", example="<why>"),
        "until": Key("date", "The last day on which it counts.", example="2030-01-31"),
    },
}
"""The sections of `msgen.yaml`, which is beside the groups and holds none."""

_NAME: dict[str, Any] = {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_]*$"}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a schema file, for completion in editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "msgen message group",
        "$ref": "#/$defs/group",
        "$defs": {name: _section(name, keys) for name, keys in SECTIONS.items()},
    }


def _section(name: str, keys: dict[str, Key]) -> dict[str, Any]:
    section: dict[str, Any] = {
        # `Empty:` with nothing behind it is a struct without fields.
        "type": ["object", "null"] if name == "struct" else "object",
        "additionalProperties": False,
        "properties": {
            key: {**_shape(spec), "description": spec.doc} for key, spec in keys.items()
        },
    }
    required = [key for key, spec in keys.items() if spec.required]
    if required:
        section["required"] = required
    return section


def _shape(spec: Key) -> dict[str, Any]:
    shape = spec.shape
    if shape == "name":
        return dict(_NAME)
    if shape == "names":
        return {"type": "array", "items": dict(_NAME), "uniqueItems": True}
    if shape in ("text", "type"):
        return {"type": "string"}
    if shape == "count":
        return {"type": "integer", "minimum": spec.least, "maximum": spec.most}
    if shape == "flag":
        return {"type": "boolean"}
    if shape == "value":
        return {}
    kind, _, section = shape.partition(" ")
    if not section:
        return {"$ref": f"#/$defs/{kind}"}
    value: dict[str, Any] = {"$ref": f"#/$defs/{section}"}
    if kind == "short":
        first = next(iter(SECTIONS[section].values()))
        value = {"anyOf": [_shape(first), value]}
    return {
        "type": "object",
        "propertyNames": dict(_NAME),
        "additionalProperties": value,
    }

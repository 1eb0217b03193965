"""Random edits of a random schema: what people do to schema files, the careful and the careless."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from msgen.codegen import SchemaError
from msgen.codegen.schema import model
from msgen.codegen.schema.loader import load_files
from schemas import DTYPES, FIELD_NAMES, INTS, MEMBER_NAMES, SchemaMaker, Source

Files = dict[str, Any]
"""Group name to its file, as plain data."""

_TRIES = 40


def load(files: Files) -> model.Schema:
    texts = {
        f"{name}.yaml": json.dumps(data, ensure_ascii=False).encode()
        for name, data in files.items()
    }
    return load_files("schema", "schema", texts)


def random_files(source: Source) -> Files:
    """Make the files of a first version.

    In half of the records a part of the fields, or all, is of a later version: what the
    fingerprint does not see is where a diff alone can tell.
    """
    texts = SchemaMaker(source).files()
    files = {
        name.removesuffix(".yaml"): json.loads(text) for name, text in texts.items()
    }
    for data in files.values():
        for key in ("structs", "messages"):
            for record in data.get(key, {}).values():
                fields = record.get("fields")
                if fields and source.integer(1, 2) == 1:
                    start = source.integer(0, len(fields) - 1)
                    for spec in list(fields.values())[start:]:
                        _make_later(spec, source)
    return files


def _make_later(spec: dict[str, Any], source: Source) -> None:
    spec["since"] = 2
    if "default" not in spec:
        default = SchemaMaker(source).default(spec["type"])
        if default is None:
            spec["type"] += "?"
            default = [None]
        spec["default"] = default[0]


def edited(files: Files, source: Source) -> tuple[Files, model.Schema, list[str]]:
    """Return an edited copy that is valid, and the names of the edits."""
    names: list[str] = []
    result = files
    for _ in range(source.integer(1, 2)):
        for _ in range(_TRIES):
            attempt = Editor(copy.deepcopy(result), source)
            edit = attempt.choice(_EDITS)
            if not edit(attempt):
                continue
            try:
                load(attempt.files)
            except SchemaError:
                continue
            result = attempt.files
            names.append(edit.__name__)
            break
    return result, load(result), names


@dataclass
class Editor:
    """Changes files in place; an edit that finds nothing to change returns False."""

    files: Files
    source: Source

    def choice(self, options: Any) -> Any:
        options = list(options)
        return options[self.source.integer(0, len(options) - 1)]

    def chance(self, one_in: int = 2) -> bool:
        return self.source.integer(1, one_in) == 1

    @property
    def main(self) -> dict[str, Any]:
        """The file that has messages."""
        found: dict[str, Any] = next(
            data for data in self.files.values() if "messages" in data
        )
        return found

    def record(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Choose a record that has fields; return its group's file and its fields."""
        found = [
            (data, record["fields"])
            for data in self.files.values()
            for key in ("structs", "messages")
            for record in data.get(key, {}).values()
            if record.get("fields")
        ]
        return self.choice(found) if found else ({}, {})

    def field(self) -> tuple[dict[str, Any], dict[str, Any], str]:
        group, fields = self.record()
        return group, fields, self.choice(fields) if fields else ""

    def enum(self) -> tuple[dict[str, Any], dict[str, Any]]:
        found = [
            (data, enum)
            for data in self.files.values()
            for enum in data.get("enums", {}).values()
        ]
        return self.choice(found) if found else ({}, {})

    def message(self) -> tuple[str, dict[str, Any]]:
        name = self.choice(self.main["messages"])
        return name, self.main["messages"][name]

    def new_type(self) -> str:
        maker = SchemaMaker(self.source)
        for data in self.files.values():
            maker.structs += data.get("structs", {})
            maker.enums += data.get("enums", {})
        maker.messages = [
            name
            for name, each in self.main["messages"].items()
            if "removed" not in each
        ]
        return maker.type(1)

    def default_of(self, type_: str) -> list[Any] | None:
        return SchemaMaker(self.source).default(type_)

    def new_field(self, group: dict[str, Any], since: bool) -> dict[str, Any]:
        spec: dict[str, Any] = {"type": self.new_type()}
        default = self.default_of(spec["type"])
        if since:
            group["version"] += 1
            spec["since"] = group["version"]
            if default is None:
                nullable = spec["type"].endswith("?") or spec["type"] == "any"
                spec["type"] += "" if nullable else "?"
                default = [None]
        if default is not None and (since or self.chance()):
            spec["default"] = default[0]
        return spec


def _rename(mapping: dict[str, Any], old: str, new: str) -> None:
    items = [(new if key == old else key, value) for key, value in mapping.items()]
    mapping.clear()
    mapping.update(items)


def _number(edit: Editor, taken: list[int]) -> int:
    return next(n for n in range(edit.source.integer(0, 50), 300) if n not in taken)


# --- fields


def append_field(edit: Editor) -> bool:
    group, fields = edit.record()
    if not fields:
        return False
    name = edit.choice(FIELD_NAMES)
    if name in fields:
        return False
    fields[name] = edit.new_field(group, edit.chance(4) is False)
    return True


def insert_field(edit: Editor) -> bool:
    group, fields = edit.record()
    name = edit.choice(FIELD_NAMES)
    if not fields or name in fields:
        return False
    items = list(fields.items())
    spec = edit.new_field(group, False)
    position = edit.source.integer(0, len(items))
    if position and items[position - 1][1].get("since", 1) > 1:
        spec["since"] = items[position - 1][1]["since"]
        spec["type"], spec["default"] = "int?", None
    items.insert(position, (name, spec))
    fields.clear()
    fields.update(items)
    return True


def delete_field(edit: Editor) -> bool:
    _, fields, name = edit.field()
    return bool(fields) and fields.pop(name) is not None


def delete_last_field(edit: Editor) -> bool:
    _, fields = edit.record()
    return bool(fields) and fields.popitem() is not None


def remove_field(edit: Editor) -> bool:
    _, fields, name = edit.field()
    if fields:
        fields[name]["removed"] = True
    return bool(fields)


def restore_field(edit: Editor) -> bool:
    _, fields, name = edit.field()
    return bool(fields) and fields[name].pop("removed", None) is not None


def rename_field(edit: Editor) -> bool:
    _, fields, name = edit.field()
    new = edit.choice(FIELD_NAMES)
    if not fields or new in fields:
        return False
    if edit.chance(3) is False:
        fields[name].setdefault("was", name)
    _rename(fields, name, new)
    return True


def swap_fields(edit: Editor) -> bool:
    _, fields = edit.record()
    if len(fields) < 2:
        return False
    items = list(fields.items())
    at = edit.source.integer(0, len(items) - 2)
    items[at], items[at + 1] = items[at + 1], items[at]
    fields.clear()
    fields.update(items)
    return True


def rotate_fields(edit: Editor) -> bool:
    _, fields = edit.record()
    if len(fields) < 3:
        return False
    name = next(iter(fields))
    fields[name] = fields.pop(name)
    return True


def retype_field(edit: Editor) -> bool:
    _, fields, name = edit.field()
    if not fields:
        return False
    spec = fields[name]
    for key in ("default", "max_len", "finite", "device"):
        spec.pop(key, None)
    spec["type"] = edit.new_type()
    if spec.get("since", 1) > 1:
        default = edit.default_of(spec["type"])
        if default is None:
            return False
        spec["default"] = default[0]
    return True


_PARTS = [
    *((width, other) for width in INTS for other in INTS if width != other),
    ("float", "f32"),
    ("f32", "float"),
    ("[n", "[m"),
    (", n", ", m"),
    (", n", ", 2"),
    (", m", ", n"),
    (", _", ", n"),
    (", 2", ", 3"),
    (", *", ", _"),
    (", _]", ", *]"),
    (", n]", ", n, m]"),
    *((f"tensor[{dtype}", "tensor[uint32") for dtype in DTYPES),
    *((f"tensor[{dtype}", "tensor[any") for dtype in DTYPES),
    ("tensor[any", "tensor[int8"),
    (" | str", ""),
    (" | ", " | bytes | "),
    ("bytes", "bytes | int"),
    ("str", "bytes"),
    ("str", "str | int"),
    ("list[", "tuple["),
    ("bool", "any"),
    ("int", "any"),
    ("str", "str?"),
    ("?", ""),
]
"""Words of types, and what people put in their place."""


def replace_part(edit: Editor) -> bool:
    """Change one word of a type: a width, a dtype, a dimension, an alternative."""
    _, fields, name = edit.field()
    if not fields:
        return False
    spec = fields[name]
    fitting = [each for each in _PARTS if each[0] in spec["type"]]
    if not fitting:
        return False
    # Each word at once, however many ways there are to change it.
    word = edit.choice(dict.fromkeys(before for before, _ in fitting))
    before, after = edit.choice([each for each in fitting if each[0] == word])
    spec["type"] = spec["type"].replace(before, after, 1)
    return True


def toggle_nullable(edit: Editor) -> bool:
    _, fields, name = edit.field()
    if not fields:
        return False
    type_ = fields[name]["type"]
    fields[name]["type"] = type_[:-1] if type_.endswith("?") else f"{type_}?"
    return True


def reorder_union(edit: Editor) -> bool:
    _, fields, name = edit.field()
    if not fields or " | " not in fields[name]["type"]:
        return False
    type_ = fields[name]["type"]
    if "[" in type_ or not type_.startswith("("):
        return False
    options = type_.strip("()?").split(" | ")
    fields[name]["type"] = type_.replace(
        type_.strip("()?"), " | ".join(reversed(options))
    )
    return True


def change_default(edit: Editor) -> bool:
    _, fields, name = edit.field()
    if not fields:
        return False
    if fields[name].get("since", 1) == 1 and edit.chance(3):
        return fields[name].pop("default", None) is not None
    default = edit.default_of(fields[name]["type"])
    if default is None:
        return False
    fields[name]["default"] = default[0]
    return True


def change_limit(edit: Editor) -> bool:
    _, fields, name = edit.field()
    if not fields:
        return False
    spec, core = fields[name], fields[name]["type"].removesuffix("?")
    if core in ("float", "f32"):
        spec["finite"] = not spec.get("finite", False)
    elif edit.chance(4):
        return spec.pop("max_len", None) is not None
    else:
        spec["max_len"] = edit.source.integer(1, 12)
    return True


def change_since(edit: Editor) -> bool:
    group, fields, name = edit.field()
    if not fields or "default" not in fields[name]:
        return False
    fields[name]["since"] = edit.source.integer(1, group["version"])
    return True


def change_doc(edit: Editor) -> bool:
    group, fields, name = edit.field()
    if not fields:
        return False
    fields[name]["doc"] = "Another text."
    fields[name]["deprecated"] = True
    group["doc"] = "Another text."
    return True


# --- messages


def add_message(edit: Editor) -> bool:
    main = edit.main
    name = edit.choice(["Added", "Extra", "Flush"])
    if name in main["messages"]:
        return False
    tag = _number(edit, [each["tag"] for each in main["messages"].values()])
    message: dict[str, Any] = {"tag": tag}
    if edit.chance(4) is False:
        main["version"] += 1
        message["since"] = main["version"]
    message["fields"] = {"uid": "int", "more": {"type": edit.new_type()}}
    message["fields"]["uid"] = {"type": "int"}
    main["messages"][name] = message
    return True


def delete_message(edit: Editor) -> bool:
    name, _ = edit.message()
    return edit.main["messages"].pop(name) is not None


def remove_message(edit: Editor) -> bool:
    _, message = edit.message()
    message["removed"] = True
    return True


def restore_message(edit: Editor) -> bool:
    _, message = edit.message()
    return message.pop("removed", None) is not None


def rename_message(edit: Editor) -> bool:
    name, message = edit.message()
    if edit.chance(3) is False:
        message.setdefault("was", name)
    _rename(edit.main["messages"], name, f"{name}Renamed")
    text = json.dumps(edit.files).replace(f"list[{name}]", f"list[{name}Renamed]")
    edit.files = json.loads(text)
    return True


def swap_tags(edit: Editor) -> bool:
    (first, a), (second, b) = edit.message(), edit.message()
    a["tag"], b["tag"] = b["tag"], a["tag"]
    return first != second


def change_tag(edit: Editor) -> bool:
    _, message = edit.message()
    taken = [each["tag"] for each in edit.main["messages"].values()]
    message["tag"] = _number(edit, taken)
    return True


def reorder_messages(edit: Editor) -> bool:
    items = list(reversed(edit.main["messages"].items()))
    edit.main["messages"] = dict(items)
    return len(items) > 1


def change_batch(edit: Editor) -> bool:
    main = edit.main
    if "batch" in main and edit.chance():
        del main["batch"]
    elif "batch" in main:
        main["batch"]["tag"] = 254
    else:
        main["version"] += 1
        main["batch"] = {"name": "BatchMain", "tag": 255, "since": main["version"]}
    return True


def hold_messages(edit: Editor) -> bool:
    """Let a field hold one of several messages, or one more of them."""
    _, fields, name = edit.field()
    alive = [
        key for key, each in edit.main["messages"].items() if "removed" not in each
    ]
    if not fields or not fields[name]["type"].startswith("list["):
        return False
    inner = fields[name]["type"][5:-1]
    if not set(inner.split(" | ")) <= set(alive):
        return False
    options = dict.fromkeys([*inner.split(" | "), edit.choice(alive)])
    fields[name]["type"] = f"list[{' | '.join(options)}]"
    return True


# --- enums


def add_member(edit: Editor) -> bool:
    group, enum = edit.enum()
    if not enum:
        return False
    name = edit.choice([*MEMBER_NAMES, "extra"])
    values = enum["values"]
    if name in values:
        return False
    taken = [
        each["value"] if isinstance(each, dict) else each for each in values.values()
    ]
    number = _number(edit, taken)
    if edit.chance(4):
        values[name] = number
    else:
        group["version"] += 1
        values[name] = {"value": number, "since": group["version"]}
    return True


def delete_member(edit: Editor) -> bool:
    _, enum = edit.enum()
    if not enum:
        return False
    name = edit.choice(enum["values"])
    return len(enum["values"]) > 1 and enum["values"].pop(name) is not None


def rename_member(edit: Editor) -> bool:
    _, enum = edit.enum()
    if not enum:
        return False
    values, name = enum["values"], edit.choice(enum["values"])
    if not isinstance(values[name], dict):
        values[name] = {"value": values[name]}
    if edit.chance(3) is False:
        values[name].setdefault("was", name)
    if enum.get("unknown") == name:
        enum["unknown"] = "renamed"
    _rename(values, name, "renamed")
    return True


def renumber_members(edit: Editor) -> bool:
    _, enum = edit.enum()
    if not enum or len(enum["values"]) < 2:
        return False
    values = enum["values"]
    first, second = list(values)[:2]
    if edit.chance():
        values[first], values[second] = values[second], values[first]
    elif isinstance(values[first], int):
        values[first] = 250
    return True


def change_unknown(edit: Editor) -> bool:
    _, enum = edit.enum()
    if not enum:
        return False
    if "unknown" in enum and edit.chance():
        del enum["unknown"]
    else:
        enum["unknown"] = edit.choice(enum["values"])
    return True


# --- structs and groups


def _in_types(files: Files, change: Callable[[str], str]) -> None:
    for data in files.values():
        for key in ("structs", "messages"):
            for record in data.get(key, {}).values():
                for spec in record.get("fields", {}).values():
                    if isinstance(spec, dict):
                        spec["type"] = change(spec["type"])


def rename_struct(edit: Editor) -> bool:
    structs = edit.files["lib"].get("structs", {}) if "lib" in edit.files else {}
    if not structs:
        return False
    name = edit.choice(structs)
    _rename(structs, name, f"{name}Renamed")
    _in_types(edit.files, lambda text: _word(text, name, f"{name}Renamed"))
    return True


def move_struct(edit: Editor) -> bool:
    lib = edit.files.get("lib", {})
    if not lib.get("structs"):
        return False
    name = edit.choice(lib["structs"])
    edit.main.setdefault("structs", {})[name] = lib["structs"].pop(name)
    return True


def split_struct(edit: Editor) -> bool:
    """Give one field a copy of its struct, under another name."""
    lib = edit.files.get("lib", {})
    _, fields, field = edit.field()
    for name in lib.get("structs", {}):
        if fields and fields[field]["type"].startswith(name):
            copied = f"{name}Copy"
            if copied in lib["structs"]:
                return False
            lib["structs"][copied] = copy.deepcopy(lib["structs"][name])
            fields[field]["type"] = _word(fields[field]["type"], name, copied)
            if edit.chance() and lib["structs"][copied].get("fields"):
                lib["structs"][copied]["fields"].popitem()
            return True
    return False


def rename_group(edit: Editor) -> bool:
    if "main" not in edit.files or edit.chance():
        return False
    edit.files["core"] = {**edit.files.pop("main"), "group": "core"}
    return True


def change_processes(edit: Editor) -> bool:
    edit.main["receiver"] = edit.choice(["engine", "other"])
    edit.main["senders"] = [edit.choice(["api", "cli"])]
    return True


def _word(text: str, old: str, new: str) -> str:
    parts = "".join(char if char.isalnum() else f" {char} " for char in text).split(" ")
    return "".join(new if part == old else part for part in parts)


_EDITS: list[Callable[[Editor], bool]] = [
    *[append_field] * 4,
    insert_field,
    delete_field,
    *[delete_last_field] * 2,
    *[remove_field] * 3,
    restore_field,
    *[rename_field] * 2,
    swap_fields,
    rotate_fields,
    retype_field,
    *[replace_part] * 6,
    toggle_nullable,
    *[reorder_union] * 2,
    *[change_default] * 2,
    *[change_limit] * 2,
    change_since,
    change_doc,
    *[add_message] * 2,
    delete_message,
    *[remove_message] * 2,
    restore_message,
    *[rename_message] * 2,
    swap_tags,
    change_tag,
    reorder_messages,
    change_batch,
    *[hold_messages] * 2,
    *[add_member] * 3,
    delete_member,
    *[rename_member] * 2,
    renumber_members,
    change_unknown,
    *[rename_struct] * 2,
    *[move_struct] * 2,
    *[split_struct] * 2,
    rename_group,
    change_processes,
]

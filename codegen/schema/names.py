"""Rules for names: what a schema may call things so that the generated module works."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from .errors import Place, Problems
from .texts import shown

# Attributes of enum.IntEnum that a member would replace; a fixed list, so that a schema is valid
# or not whatever the Python version.
_ENUM_ATTRIBUTES = frozenset(
    [
        "as_integer_ratio",
        "bit_count",
        "bit_length",
        "conjugate",
        "denominator",
        "from_bytes",
        "imag",
        "is_integer",
        "mro",
        "name",
        "numerator",
        "real",
        "to_bytes",
        "value",
    ]
)
_LIKE_DIGITS = frozenset({"l", "I", "O"})
_READS_LIKE_A_DIGIT = "reads like a digit, and linters refuse it"
_BASE_CLASS_METHODS = frozenset({"decoder", "encoder"})


def pascal_case(snake: str) -> str:
    """`api_server` to `ApiServer`."""
    return "".join(part[:1].upper() + part[1:] for part in snake.split("_"))


@cache
def snake_case(pascal: str) -> str:
    """`UserMsg` to `user_msg`, `HTTPReply` to `http_reply`."""
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", pascal)
    return re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", words).lower()


def base_name(group: str) -> str:
    """The base class of a group's messages: `BaseBackendMsg`."""
    return f"Base{pascal_case(group)}Msg"


def union_name(group: str) -> str:
    """The union type of a group's messages: `BackendMsg`."""
    return f"{pascal_case(group)}Msg"


def _ascii_words(name: str) -> str:
    return "_".join(re.findall(r"[A-Za-z0-9]+", name)) or "name"


def _as_snake(name: str) -> str:
    snake = re.sub(r"_+", "_", snake_case(_ascii_words(name)))
    snake = snake if snake[:1].isalpha() else f"n{snake}"
    return f"{snake}_value" if keyword.iskeyword(snake) else snake


def _as_pascal(name: str) -> str:
    pascal = pascal_case(_ascii_words(name))
    return pascal if pascal[:1].isalpha() else f"T{pascal}"


@dataclass(frozen=True)
class _Style:
    """How the names of one kind of thing are written."""

    pattern: re.Pattern[str]
    rule: str
    convert: Callable[[str], str]


_TYPE = _Style(
    re.compile(r"[A-Z][A-Za-z0-9]*\Z"),
    "type names are PascalCase in ASCII letters and digits",
    _as_pascal,
)
_FIELD = _Style(
    re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*\Z"),
    "field names are snake_case in ASCII letters and digits",
    _as_snake,
)
_MEMBER = _Style(
    re.compile(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*\Z"),
    "enum members are ASCII letters, digits and single underscores",
    _as_snake,
)
_GROUP = _Style(
    _FIELD.pattern,
    "names of groups and processes are snake_case in ASCII letters and digits",
    _as_snake,
)
_STYLES = {"message": _TYPE, "field": _FIELD, "member": _MEMBER}


def check_type_name(
    name: str, what: str, group: str, place: Place, problems: Problems
) -> None:
    """Check the name of a message, struct or enum of ``group``."""
    if keyword.iskeyword(name):
        _reserved(name, f"{what} name", "is a Python keyword", place, problems)
    elif name in _LIKE_DIGITS:
        _reserved(name, f"{what} name", _READS_LIKE_A_DIGIT, place, problems)
    elif not _TYPE.pattern.match(name):
        _wrong_style(_TYPE, name, f"{what} name {shown(name)}", place, problems)
    elif name in ("CODEC", "NotImplemented", base_name(group), union_name(group)):
        why = "is a name that the generated module defines"
        _reserved(name, f"{what} name", why, place, problems)


def check_imported_name(
    name: str, what: str, group: str, place: Place, problems: Problems
) -> None:
    """Check the name of a type that ``group`` imports."""
    if name in (base_name(group), union_name(group)):
        why = f"is a name that the generated module of group '{group}' defines"
        _reserved(name, f"imported {what} name", why, place, problems)


def check_field_name(
    name: str, record: str, in_message: bool, place: Place, problems: Problems
) -> None:
    """Check a field's name; messages inherit two methods whose names they cannot reuse."""
    where = f" of {record}"
    if keyword.iskeyword(name):
        _reserved(name, "field name", "is a Python keyword", place, problems, where)
    elif name in _LIKE_DIGITS:
        _reserved(name, "field name", _READS_LIKE_A_DIGIT, place, problems, where)
    elif not _FIELD.pattern.match(name):
        what = f"field name {shown(name)}{where}"
        _wrong_style(_FIELD, name, what, place, problems)
    elif name == "mro":
        # dataclasses would take the method that every class has for the field's default.
        why = "is a method of every Python class"
        _reserved(name, "field name", why, place, problems, where)
    elif in_message and name in _BASE_CLASS_METHODS:
        why = "is a method of every message"
        _reserved(name, "field name", why, place, problems, where)


def check_member_name(name: str, enum: str, place: Place, problems: Problems) -> None:
    """Check an enum member's name."""
    where = f" of {enum}"
    if keyword.iskeyword(name):
        _reserved(name, "member name", "is a Python keyword", place, problems, where)
    elif name in _LIKE_DIGITS:
        _reserved(name, "member name", _READS_LIKE_A_DIGIT, place, problems, where)
    elif name in _ENUM_ATTRIBUTES:
        why = "is an attribute of every Python enum"
        _reserved(name, "member name", why, place, problems, where)
    elif not _MEMBER.pattern.match(name):
        what = f"member name {shown(name)}{where}"
        _wrong_style(_MEMBER, name, what, place, problems)


def check_group_name(name: str, what: str, place: Place, problems: Problems) -> None:
    """Check the name of a group, receiver or sender; a group's name is a module's name."""
    if keyword.iskeyword(name):
        _reserved(name, f"{what} name", "is a Python keyword", place, problems)
    elif not _GROUP.pattern.match(name):
        _wrong_style(_GROUP, name, f"{what} name {shown(name)}", place, problems)


def check_old_name(
    name: str, kind: str, what: str, place: Place, problems: Problems
) -> None:
    """Check a name from before a rename: only its style, since reserved names may change."""
    style = _STYLES[kind]
    if not style.pattern.match(name):
        _wrong_style(style, name, f"{what} has 'was: {name}'", place, problems)


def _wrong_style(
    style: _Style, name: str, what: str, place: Place, problems: Problems
) -> None:
    odd = next(
        (char for char in name if not (char.isascii() and char.isprintable())), ""
    )
    hint = (
        f"'{odd}' (U+{ord(odd):04X}) is no ASCII letter or digit"
        if odd
        else f"such as '{style.convert(name)}'"
    )
    problems.add(
        place, "name-style", f"{what}: {style.rule}{';' if odd else ','} {hint}"
    )


def _reserved(
    name: str, what: str, why: str, place: Place, problems: Problems, where: str = ""
) -> None:
    if what == "field name":
        other = f"{name.lower()}_value"
    elif name[:1].isupper():
        other = f"{pascal_case(name.lower() if name.isupper() else name)}Value"
    else:
        other = f"{name}_value"
    problems.add(
        place,
        "name-reserved",
        f"{what} '{name}'{where} {why}; choose another, such as '{other}'",
    )

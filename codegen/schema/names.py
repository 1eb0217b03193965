"""Names: what a schema may call things so that the generated module works."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from .errors import Place, Problems
from .rule import Rule
from .texts import shown

# Reserved names, to why they are.
_LIKE_DIGITS = dict.fromkeys("lIO", "reads like a digit, and linters refuse it")
_FIELDS = {
    **_LIKE_DIGITS,
    # dataclasses would take the method that every class has for the field's default.
    "mro": "is a method of every Python class",
}
_FIELDS_OF_MESSAGES = {
    **_FIELDS,
    **dict.fromkeys(("decoder", "encoder"), "is a method of every message"),
}
# A fixed list of attributes of enum.IntEnum, so that a schema is valid or not whatever the Python
# version.
_MEMBERS = {
    **_LIKE_DIGITS,
    **dict.fromkeys(
        (
            *(
                "as_integer_ratio",
                "bit_count",
                "bit_length",
                "conjugate",
                "denominator",
            ),
            *("from_bytes", "imag", "is_integer", "mro", "name", "numerator", "real"),
            *("to_bytes", "value"),
        ),
        "is an attribute of every Python enum",
    ),
}


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


def check_type_name(
    name: str, what: str, group: str, place: Place, problems: Problems
) -> None:
    """Check the name of a message, struct or enum of ``group``."""
    defined = ("CODEC", "NotImplemented", base_name(group), union_name(group))
    why = "is a name that the generated module defines"
    reserved = {**_LIKE_DIGITS, **dict.fromkeys(defined, why)}
    _check(_TYPE, name, f"{what} name", place, problems, reserved)


def check_imported_name(
    name: str, what: str, group: str, place: Place, problems: Problems
) -> None:
    """Check the name of a type that ``group`` imports; its style is its own group's matter."""
    if name in (base_name(group), union_name(group)):
        why = f"is a name that the generated module of group '{group}' defines"
        _report_reserved(_TYPE, name, f"imported {what} name", why, place, problems)


def check_field_name(
    name: str, record: str, in_message: bool, place: Place, problems: Problems
) -> None:
    """Check a field's name; messages inherit two methods whose names they cannot reuse."""
    reserved = _FIELDS_OF_MESSAGES if in_message else _FIELDS
    _check(_FIELD, name, "field name", place, problems, reserved, f" of {record}")


def check_member_name(name: str, enum: str, place: Place, problems: Problems) -> None:
    """Check an enum member's name."""
    _check(_MEMBER, name, "member name", place, problems, _MEMBERS, f" of {enum}")


def check_group_name(name: str, what: str, place: Place, problems: Problems) -> None:
    """Check the name of a group, receiver or sender; a group's name is a module's name."""
    _check(_GROUP, name, f"{what} name", place, problems, {})


def check_old_name(
    name: str, kind: str, what: str, place: Place, problems: Problems
) -> None:
    """Check a name from before a rename: only its style, since reserved names may change."""
    style = {"message": _TYPE, "field": _FIELD, "member": _MEMBER}[kind]
    if not style.pattern.match(name):
        _report_style(style, name, f"{what} has 'was: {name}'", place, problems)


def _check(
    style: _Style,
    name: str,
    what: str,
    place: Place,
    problems: Problems,
    reserved: Mapping[str, str],
    where: str = "",
) -> None:
    """Check that a name is no keyword, not ``reserved`` (name to why), and of its style."""
    why = "is a Python keyword" if keyword.iskeyword(name) else reserved.get(name)
    if why:
        _report_reserved(style, name, what, f"{where} {why}".strip(), place, problems)
    elif not style.pattern.match(name):
        _report_style(style, name, f"{what} {shown(name)}{where}", place, problems)


def _report_style(
    style: _Style, name: str, what: str, place: Place, problems: Problems
) -> None:
    odd = next((c for c in name if not (c.isascii() and c.isprintable())), "")
    hint = (
        f"; '{odd}' (U+{ord(odd):04X}) is no ASCII letter or digit"
        if odd
        else f", such as '{style.convert(name)}'"
    )
    problems.add(place, NAME_STYLE, f"{what}: {style.rule}{hint}")


def _report_reserved(
    style: _Style, name: str, what: str, why: str, place: Place, problems: Problems
) -> None:
    if style is _FIELD:
        other = f"{name.lower()}_value"
    elif name[:1].isupper():
        other = f"{pascal_case(name.lower() if name.isupper() else name)}Value"
    else:
        other = f"{name}_value"
    problems.add(
        place,
        NAME_RESERVED,
        f"{what} '{name}' {why}; choose another, such as '{other}'",
    )


NAME_STYLE = Rule(
    "name-style",
    "a name is not written as names of its kind are",
    "Types become Python classes, fields their attributes and groups their modules. With one style "
    "for each kind, the names that the generator derives from them are valid and cannot clash.",
    "write types in PascalCase, fields, groups and processes in snake_case, and enum members in "
    "ASCII letters, digits and single underscores.",
    _report_style,
)
NAME_RESERVED = Rule(
    "name-reserved",
    "a name means something else in the generated module",
    "The module would not import, or would behave wrongly: the name is a Python keyword, the "
    "module defines it itself, or classes of this kind already have an attribute of that name.",
    "choose another name, such as one with `_value` or `Value` at its end.",
    _report_reserved,
)

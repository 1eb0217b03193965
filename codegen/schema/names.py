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

_LIKE_DIGITS = dict.fromkeys("lIO", "reads like a digit, and linters refuse it")
# A fixed list of attributes of enum.IntEnum, so that a schema is valid or not whatever the Python
# version.
_ENUM_ATTRIBUTES = dict.fromkeys(
    (
        *("as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator"),
        *("from_bytes", "imag", "is_integer", "mro", "name", "numerator", "real"),
        *("to_bytes", "value"),
    ),
    "is an attribute of every Python enum",
)
MESSAGE_METHODS = dict.fromkeys(("decoder", "encoder"), "is a method of every message")


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
    """How the names of one kind of thing are written, and which are reserved, to why."""

    pattern: re.Pattern[str]
    rule: str
    convert: Callable[[str], str]
    reserved: Mapping[str, str]


_TYPE = _Style(
    re.compile(r"[A-Z][A-Za-z0-9]*\Z"),
    "type names are PascalCase in ASCII letters and digits",
    _as_pascal,
    _LIKE_DIGITS,
)
_FIELD = _Style(
    re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*\Z"),
    "field names are snake_case in ASCII letters and digits",
    _as_snake,
    # dataclasses would take the method that every class has for the field's default.
    {**_LIKE_DIGITS, "mro": "is a method of every Python class"},
)
_MEMBER = _Style(
    re.compile(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*\Z"),
    "enum members are ASCII letters, digits and single underscores",
    _as_snake,
    {**_LIKE_DIGITS, **_ENUM_ATTRIBUTES},
)
_GROUP = _Style(
    _FIELD.pattern,
    "names of groups and processes are snake_case in ASCII letters and digits",
    _as_snake,
    {},
)
_STYLES = {
    **dict.fromkeys(("enum", "message", "struct"), _TYPE),
    **dict.fromkeys(("group", "receiver", "sender"), _GROUP),
    "field": _FIELD,
    "member": _MEMBER,
}


def check_name(
    kind: str,
    name: str,
    place: Place,
    problems: Problems,
    of: str = "",
    taken: Mapping[str, str] | None = None,
) -> None:
    """Check that a name is no keyword, not reserved, and of the style of its kind.

    Args:
        kind: what is called so, such as `message` or `sender`.
        of: what it belongs to, as errors call that.
        taken: names that are reserved there, beside those of the kind, to why.
    """
    style = _STYLES[kind]
    why = "is a Python keyword" if keyword.iskeyword(name) else None
    why = why or style.reserved.get(name) or (taken or {}).get(name)
    where = f" of {of}" if of else ""
    if why:
        _report_reserved(style, name, f"{kind} name", f"{where} {why}", place, problems)
    elif not style.pattern.match(name):
        _report_style(style, name, f"{kind} name {shown(name)}{where}", place, problems)


def taken_in(group: str) -> dict[str, str]:
    """Return the names that no type of a group can have, to why."""
    defined = ("CODEC", "NotImplemented", base_name(group), union_name(group))
    return dict.fromkeys(defined, "is a name that the generated module defines")


def check_imported_name(
    name: str, what: str, group: str, place: Place, problems: Problems
) -> None:
    """Check the name of a type that ``group`` imports; its style is its own group's matter."""
    if name in (base_name(group), union_name(group)):
        why = f" is a name that the generated module of group '{group}' defines"
        _report_reserved(_TYPE, name, f"imported {what} name", why, place, problems)


def check_old_name(
    name: str, kind: str, what: str, place: Place, problems: Problems
) -> None:
    """Check a name from before a rename: only its style, since reserved names may change."""
    style = _STYLES[kind]
    if not style.pattern.match(name):
        _report_style(style, name, f"{what} has 'was: {name}'", place, problems)


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
        f"{what} '{name}'{why}; choose another, such as '{other}'",
    )


NAME_STYLE = Rule(
    "name-style",
    "a name is not written as names of its kind are",
    "Types become Python classes, fields their attributes and groups their modules. With one style "
    "for each kind, the names that the generator derives from them are valid in Python.",
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

"""Rules for names: what a schema may call things so that the generated module works."""

from __future__ import annotations

import keyword
import re

from .errors import Place, Problems

_PASCAL = re.compile(r"[A-Z][A-Za-z0-9]*\Z")
_SNAKE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*\Z")
_MEMBER = re.compile(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*\Z")

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
_BASE_CLASS_METHODS = frozenset({"decoder", "encoder"})


def pascal_case(snake: str) -> str:
    """`api_server` to `ApiServer`."""
    return "".join(part[:1].upper() + part[1:] for part in snake.split("_"))


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


def check_type_name(
    name: str, what: str, group: str, place: Place, problems: Problems
) -> None:
    """Check the name of a message, struct or enum of ``group``."""
    if keyword.iskeyword(name):
        _reserved(name, what, "is a Python keyword", place, problems)
    elif not _PASCAL.match(name):
        problems.add(
            place,
            "name-style",
            f"{what} name '{name}': type names are PascalCase in ASCII letters and digits, "
            f"such as '{_as_pascal(name)}'",
        )
    elif name in ("CODEC", base_name(group), union_name(group)):
        _reserved(
            name, what, "is a name that the generated module defines", place, problems
        )


def check_field_name(
    name: str, what: str, in_message: bool, place: Place, problems: Problems
) -> None:
    """Check a field's name; messages inherit two methods whose names they cannot reuse."""
    if keyword.iskeyword(name):
        _reserved(name, what, "is a Python keyword", place, problems)
    elif not _SNAKE.match(name):
        problems.add(
            place,
            "name-style",
            f"{what} name '{name}': field names are snake_case in ASCII letters and digits, "
            f"such as '{_as_snake(name)}'",
        )
    elif name == "mro":
        # dataclasses would take the method that every class has for the field's default.
        _reserved(name, what, "is a method of every Python class", place, problems)
    elif in_message and name in _BASE_CLASS_METHODS:
        _reserved(name, what, "is a method of every message", place, problems)


def check_member_name(name: str, what: str, place: Place, problems: Problems) -> None:
    """Check an enum member's name."""
    if keyword.iskeyword(name):
        _reserved(name, what, "is a Python keyword", place, problems)
    elif name in _ENUM_ATTRIBUTES:
        _reserved(name, what, "is an attribute of every Python enum", place, problems)
    elif not _MEMBER.match(name):
        problems.add(
            place,
            "name-style",
            f"{what} name '{name}': enum members are ASCII letters, digits and single "
            f"underscores, such as '{_as_snake(name)}'",
        )


def check_group_name(name: str, what: str, place: Place, problems: Problems) -> None:
    """Check the name of a group, receiver or sender; a group's name is a module's name."""
    if keyword.iskeyword(name):
        _reserved(name, what, "is a Python keyword", place, problems)
    elif not _SNAKE.match(name):
        problems.add(
            place,
            "name-style",
            f"{what} name '{name}': names of groups and processes are snake_case in ASCII "
            f"letters and digits, such as '{_as_snake(name)}'",
        )


def _reserved(name: str, what: str, why: str, place: Place, problems: Problems) -> None:
    problems.add(
        place,
        "name-reserved",
        f"{what} name '{name}' {why}; choose another, such as '{_alternative(name)}'",
    )


def _alternative(name: str) -> str:
    if name[:1].isupper():
        return f"{pascal_case(name.lower() if name.isupper() else name)}Value"
    return f"{name}_value"


def _ascii_words(name: str) -> str:
    return "_".join(re.findall(r"[A-Za-z0-9]+", name)) or "name"


def _as_snake(name: str) -> str:
    snake = snake_case(_ascii_words(name))
    snake = re.sub(r"_+", "_", snake)
    snake = snake if snake[:1].isalpha() else f"n{snake}"
    return f"{snake}_value" if keyword.iskeyword(snake) else snake


def _as_pascal(name: str) -> str:
    pascal = pascal_case(_ascii_words(name))
    return pascal if pascal[:1].isalpha() else f"T{pascal}"

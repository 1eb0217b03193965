"""Filters that lay text out: long lines of Python as a formatter wraps them, and docstrings.

Templates write each statement on one line, however long. `code` breaks those over 88 columns as
`ruff format` does, so that emitted modules pass it unchanged: at the operators of the expression,
else in its last brackets.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import lru_cache

WIDTH = 88

_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|[\[({]|[\])}]|, |: '
    r"| (?:=|for|if|else|or|and|is not|is|not in|in|<=|<|>|!=|==|\|) "
)
"""Strings, brackets and what an expression or a list can be broken at."""
_OPERATORS = (
    (" if ", " else "),
    (" or ",),
    (" and ",),
    (" is not ", " is ", " not in ", " in ", " <= ", " < ", " > ", " != ", " == "),
    (" | ",),
)
"""What an expression is broken at: the first of these groups that it has outside of brackets."""

_SHORT = re.compile(r"[!#-\[\]-~]([ !#-\[\]-~]*[!#-\[\]-~])?")
"""A line of a docstring that is right as it is: ASCII without quotes and backslashes."""


def code(text: str) -> str:
    """Wrap the long lines of a class or function; lines of nothing but spaces are dropped."""
    lines: list[str] = []
    in_docstring = False
    for line in text.strip("\n").split("\n"):
        statement = line.strip()
        if in_docstring or statement.startswith('"""'):
            # Only a docstring starts with these quotes: a string that holds some has others.
            opens = not in_docstring and statement.count('"""') == 1
            in_docstring = opens or (in_docstring and not statement.endswith('"""'))
        elif len(line) > WIDTH:
            lines += _statement(len(line) - len(line.lstrip()), statement)
            continue
        if not line.isspace():
            lines.append(line)
    return "\n".join(lines)


def nested(text: str) -> str:
    """Indent the lines behind the first by one level."""
    return text.strip("\n").replace("\n", "\n    ")


def docstring(text: str, indent: int = 0) -> str:
    """Write a docstring whose first line stands at an indentation; nothing for an empty text."""
    if _SHORT.fullmatch(text) and len(text) + indent + 6 <= WIDTH:
        return f'"""{text}"""'
    lines = list(_docstring_lines(text, max(WIDTH - indent - 6, 20)))
    if not lines:
        return ""
    if lines[0].startswith('"'):
        lines[0] = f" {lines[0]}"  # apart from the opening quotes
    if re.search(r'(?<!\\)(\\\\)*"\Z', lines[-1]):
        # A bare quote before the closing quotes would end the docstring early.
        lines[-1] = lines[-1][:-1] + '\\"'
    end = [] if len(lines) == 1 else [""]
    body = f"\n{' ' * indent}".join([*lines, *end])
    return re.sub(r"\n +\n", "\n\n", f'"""{body}"""')


def _docstring_lines(text: str, width: int) -> Iterator[str]:
    """Yield a text in escaped lines; its own line breaks stay, long lines are wrapped."""
    for line in inspect.cleandoc(text).splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        for part in textwrap.wrap(
            line.rstrip(),
            width,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]:
            escaped = "".join(
                char if char.isprintable() else char.encode("unicode_escape").decode()
                for char in part.replace("\\", "\\\\")
            )
            yield escaped.replace('"""', '\\"\\"\\"')


def literal(value: object) -> str:
    """Write a plain Python value; strings are ASCII and in the quotes that a formatter prefers."""
    if isinstance(value, str):
        return _quoted(value.encode("unicode_escape").decode("ascii"))
    if isinstance(value, bytes):
        text = value.decode("latin-1").encode("unicode_escape").decode("ascii")
        return f"b{_quoted(text)}"
    return repr(value)


def _quoted(escaped: str) -> str:
    """Put quotes around a text in which everything but quotes is escaped already."""
    quote = "'" if escaped.count('"') > escaped.count("'") else '"'
    escaped = escaped.replace(quote, f"\\{quote}")
    return f"{quote}{escaped}{quote}"


def _statement(indent: int, text: str) -> list[str]:
    """Wrap a statement, a clause, or an entry of a display that ends in a comma."""
    if text.startswith("from "):
        head, _, names = text.partition(" import ")
        return _brackets(indent, f"{head} import (", names, ")", joined=False)
    if text.startswith("class "):
        name, _, base = text.removesuffix("):").partition("(")
        return _brackets(indent, f"{name}(", base, "):")
    if text.startswith("def "):
        head, _, rest = text.partition("(")
        parameters, arrow, result = rest.rpartition(") -> ")
        only = "" if ", " in parameters else ","
        return _brackets(indent, f"{head}(", parameters + only, arrow + result)
    if text.startswith("for "):
        targets, _, source = text.removeprefix("for ").partition(" in ")
        return _brackets(indent, "for (", targets, f") in {source}", joined=False)
    if keyword := re.match(r"(?:el)?if |return ", text):
        tail = "" if keyword[0] == "return " else ":"
        expression = text[keyword.end() :].removesuffix(":")
        return _expression(indent, keyword[0], expression, tail)
    if text.endswith(","):
        return _item(indent, text[:-1])
    target, assign, value = _partition(text, " = ")
    name, colon, annotation = _partition(target, ": ")
    if not assign:
        head, expression = (f"{name}: ", annotation) if colon else ("", text)
        return _expression(indent, head, expression, "")
    if "," in name:
        return _brackets(indent, "(", name.strip("(),"), f") = {value}", joined=False)
    lines = _expression(indent, f"{target} = ", value, "")
    if colon and len(lines[0]) > WIDTH and ("[" in annotation or " | " in annotation):
        *first, last = _expression(indent, f"{name}: ", annotation, " =" + " " * WIDTH)
        lines = [*first, *_expression(indent, f"{last.strip()} ", value, "")]
    return lines


def _expression(
    indent: int, head: str, text: str, tail: str, inside: bool = False
) -> list[str]:
    """Lay out `head` + an expression + `tail`; ``inside`` brackets, lines end where they like."""
    line = f"{' ' * indent}{head}{text}{tail}"
    if len(line) <= WIDTH:
        return [line]
    parts = _operands(text)
    if inside and len(parts) > 1:
        lines = _expression(indent, head, parts[0], "", True)
        for part in parts[1:-1]:
            lines += _expression(indent, "", part, "", True)
        return [*lines, *_expression(indent, "", parts[-1], tail, True)]
    groups = _trailing_brackets(text)
    opening = [each for each in groups if indent + len(head) + each[0] < WIDTH]
    is_last_open = bool(opening) and parts[-1].startswith("and (")
    if not inside and not is_last_open and not (opening and len(parts) == 1):
        inner = _expression(indent + 4, "", text, "", True)
        opened = f"{' ' * indent}{head}("
        if len(parts) > 1 or max(len(opened), len(inner[0])) <= WIDTH:
            return [opened, *inner, f"{' ' * indent}){tail}"]
    if not groups:
        return [line]
    start, end = opening[-1] if opening else groups[0]
    is_display = not re.search(r"[\w\])]\Z", text[:start])
    *lines, _ = _brackets(
        indent,
        head + text[: start + 1],
        text[start + 1 : end],
        text[end],
        joined=is_last_open or not is_display,
        comma=is_display and not is_last_open,
    )
    return [*lines, *_expression(indent, text[end], text[end + 1 :], tail, True)]


def _brackets(
    indent: int,
    head: str,
    body: str,
    tail: str,
    joined: bool = True,
    comma: bool = True,
) -> list[str]:
    """Lay out what stands in brackets: on a line of its own, or on one for each item.

    ``joined`` allows the one line, as for arguments; ``comma`` the comma behind a single item.
    """
    inner = indent + 4
    element, clause, loop = _partition(body, " for ")
    if inner + len(body) <= WIDTH and (joined or clause):
        lines = [" " * inner + body]
    elif clause:
        targets, _, source = loop.partition(" in ")
        lines = _item(inner, element, "")
        lines += _expression(inner, f"for {targets} in ", source, "", True)
    elif not comma and not _partition(body, ", ")[1]:
        lines = _item(inner, body, "")
    else:
        items = _split(body, ", ")
        lines = [line for item in items for line in _item(inner, item.rstrip(","))]
    return [f"{' ' * indent}{head}", *lines, f"{' ' * indent}{tail}"]


def _item(indent: int, text: str, tail: str = ",") -> list[str]:
    """Lay out an argument, a list's item or a dict's entry."""
    if indent + len(text) + len(tail) <= WIDTH:
        return [f"{' ' * indent}{text}{tail}"]
    head, is_lambda, value = text.partition("lambda: ")
    if is_lambda and re.fullmatch(r"(\w+=)?", head):
        lines = _expression(indent, f"{head}lambda: ", value, tail, True)
        if len(lines[0]) <= WIDTH:
            return lines
        inner = _expression(indent + 4, "", value, "", True)
        return [f"{' ' * indent}{head}lambda: (", *inner, f"{' ' * indent}){tail}"]
    key, colon, value = _partition(text, ": ")
    if not colon:
        name = re.match(r"(\w+=)?", text)
        head = name[0] if name else ""
        return _expression(indent, head, text[len(head) :], tail, True)
    lines = _expression(indent, f"{key}: ", value, tail, True)
    if len(lines[0]) <= WIDTH or not _trailing_brackets(key):
        return lines
    *first, last = _expression(indent, "", key, ":" + " " * WIDTH, True)
    return [*first, *_expression(indent, f"{last.strip()} ", value, tail, True)]


# A text is asked for its commas, its operators and its brackets in turn.
@lru_cache(1024)
def _tokens(text: str) -> list[tuple[str, int, int]]:
    """Return brackets, and separators that stand outside of them, with their start and end."""
    tokens: list[tuple[str, int, int]] = []
    depth = 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
        elif depth or token[0] in "\"'":
            continue
        if depth <= (token in "([{"):
            tokens.append((token, match.start(), match.end()))
    return tokens


def _split(text: str, separator: str) -> Iterator[str]:
    """Yield the parts of a text between separators that stand outside of brackets."""
    begin = 0
    for token, start, end in _tokens(text) if separator in text else ():
        if token == separator:
            yield text[begin:start]
            begin = end
    yield text[begin:]


def _partition(text: str, separator: str) -> tuple[str, str, str]:
    """Split a text like `str.partition`, at a separator outside of brackets."""
    first = next(_split(text, separator))
    rest = text[len(first) :]
    return first, rest[: len(separator)], rest[len(separator) :]


def _operands(text: str) -> list[str]:
    """Split an expression at its weakest operators, each of which leads the part behind it."""
    tokens = _tokens(text)
    found = {token for token, _, _ in tokens}
    operators = next((each for each in _OPERATORS if found.intersection(each)), ())
    begins = [0, *(start + 1 for token, start, _ in tokens if token in operators)]
    ends = [*(begin - 1 for begin in begins[1:]), len(text)]
    return [text[begin:end] for begin, end in zip(begins, ends)]


def _trailing_brackets(text: str) -> list[tuple[int, int]]:
    """Return where the brackets begin and end in which a text ends, but for empty ones."""
    if text[-1:] not in (")", "]", "}"):
        return []
    brackets = [start for token, start, _ in _tokens(text) if token in "([{)]}"]
    pairs = zip(brackets[::2], brackets[1::2])
    return [(start, end) for start, end in pairs if start + 1 < end]

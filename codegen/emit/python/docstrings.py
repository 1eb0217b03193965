"""Docstrings from `doc:` texts: any text in, a valid and readable docstring out."""

from __future__ import annotations

import inspect
import re
import textwrap

from .layout import Code

_WIDTH = 88


def add_docstring(code: Code, text: str) -> None:
    """Add a docstring at the code's level; nothing for an empty text."""
    lines = _lines(text, _WIDTH - 4 * code.level - 6)
    if not lines:
        return
    if lines[0].startswith('"'):
        lines[0] = f" {lines[0]}"  # apart from the opening quotes
    if len(lines) == 1:
        code.raw(f'"""{lines[0]}"""')
        return
    code.raw(f'"""{lines[0]}')
    for line in lines[1:]:
        code.raw(line)
    code.raw('"""')


def docstring(text: str) -> str:
    """Return the docstring of a module, empty for an empty text."""
    code = Code()
    add_docstring(code, text)
    return "\n".join(code.lines)


def _lines(text: str, width: int) -> list[str]:
    """Split a text into escaped lines; its own line breaks stay, long lines are wrapped."""
    lines: list[str] = []
    for line in inspect.cleandoc(text).splitlines():
        line = line.rstrip()
        indent = line[: len(line) - len(line.lstrip())]
        lines += textwrap.wrap(
            line,
            max(width, 20),
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]
    lines = [_escape(line) for line in lines]
    if lines and re.search(r'(?<!\\)(\\\\)*"\Z', lines[-1]):
        # A bare quote before the closing quotes would end the docstring early.
        lines[-1] = lines[-1][:-1] + '\\"'
    return lines


def _escape(line: str) -> str:
    """Escape what a docstring cannot hold as it is: backslashes, triple quotes, controls."""
    escaped = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode()
        for char in line.replace("\\", "\\\\")
    )
    return escaped.replace('"""', '\\"\\"\\"')

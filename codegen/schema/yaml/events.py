"""Text to the events of PyYAML, or to one syntax error.

The events come from libyaml when PyYAML was built with it. A syntax error is always found again by
the pure Python parser, so that neither the text of an error nor the validity of a schema depends
on the machine.
"""

from __future__ import annotations

import re
from typing import Any

import yaml
from msgen.codegen.schema.errors import Place, Problems
from msgen.codegen.schema.rule import Rule

_LINE_BREAKS = {
    "\x85": "a next-line character",
    "\u2028": "a line separator",
    "\u2029": "a paragraph separator",
}


class PureLoader(yaml.SafeLoader):
    """PyYAML's own parser, which reads what libyaml reads."""

    _in_flow_text = False

    def scan_plain(self) -> Any:
        self._in_flow_text = self.flow_level > 0
        try:
            return super().scan_plain()
        finally:
            self._in_flow_text = False

    def peek(self, index: int = 0) -> Any:
        # PyYAML ends unquoted text in {...} and [...] at a '?'; libyaml and YAML 1.2 do not, and
        # `{type: int?}` is what a schema is full of.
        char = super().peek(index)
        return "x" if char == "?" and self._in_flow_text else char

    def scan_flow_scalar_non_spaces(self, double: Any, start_mark: Any) -> Any:
        try:
            return super().scan_flow_scalar_non_spaces(double, start_mark)
        except (OverflowError, ValueError):
            # PyYAML lets the error of chr() through.
            raise yaml.scanner.ScannerError(
                None, None, "found an escape above \\U0010FFFF", self.get_mark()
            ) from None


_FAST_LOADER: Any = getattr(yaml, "CSafeLoader", PureLoader)


def read_events(text: str, path: str, problems: Problems) -> list[Any] | None:
    """Return the events of one file, or None after reporting why it is not YAML."""
    line_break = re.search("[\x85\u2028\u2029]", text)
    if line_break:
        char = line_break[0]
        problems.add(
            place_at(text, line_break.start(), path),
            YAML_SYNTAX,
            f"U+{ord(char):04X}, {_LINE_BREAKS[char]}, counts as a line break in YAML; remove it",
        )
        return None
    try:
        # libyaml takes a tab for a space in places where PyYAML does not.
        return list(yaml.parse(text, PureLoader if "\t" in text else _FAST_LOADER))
    except yaml.YAMLError:
        pass
    try:
        return list(yaml.parse(text, Loader=PureLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = Place(path, mark.line + 1, mark.column + 1) if mark else Place(path)
        problems.add(place, YAML_SYNTAX, f"not valid YAML: {_explain(error)}")
    except yaml.reader.ReaderError as error:
        problems.add(
            place_at(text, error.position, path),
            YAML_SYNTAX,
            f"character U+{ord(text[error.position]):04X} is not allowed in YAML; remove it",
        )
    return None


def _explain(error: yaml.MarkedYAMLError) -> str:
    """Say what PyYAML says, and what to look at."""
    if error.problem == "expected ',' or '}', but got '['":
        return (
            "'[' ends the unquoted text before it; quote a type with brackets inside {...}, as in "
            'type: "list[int]"'
        )
    text = error.problem or "it cannot be read"
    if error.context_mark:
        text += f" {error.context} that begins on line {error.context_mark.line + 1}"
    return (
        f"{text}; check indentation (spaces, no tabs), colons, brackets and quotes, and put text "
        "with special characters in single quotes"
    )


YAML_SYNTAX = Rule(
    "yaml-syntax",
    "a file is not valid YAML",
    "A file that cannot be parsed declares nothing, so what it holds is not checked either. The "
    "text is that of the YAML parser, with the place at which it gave up: the cause is there or "
    "shortly before.",
    "close quotes and brackets, put text with special characters in single quotes, and indent with "
    'spaces as the neighbours are; in {...} a type with brackets needs quotes: {type: "list[int]"}.',
    read_events,
)


def split_lines(text: str) -> list[str]:
    """Split as YAML does, once the rarer line breaks are refused."""
    return re.split("\r\n|[\r\n]", text)


def place_at(text: str, index: int, path: str) -> Place:
    """Return the place of a character of a file's text."""
    lines = split_lines(text[:index])
    return Place(path, len(lines), len(lines[-1]) + 1)

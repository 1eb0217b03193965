"""Text to the events of PyYAML, with syntax errors explained.

The events come from libyaml when PyYAML was built with it. A syntax error is always explained by
the pure Python parser, so that neither the text of an error nor the validity of a schema depends
on the machine.
"""

from __future__ import annotations

import re
from typing import Any

import yaml
from msgen.codegen.schema.errors import Place, Problems

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
            raise yaml.scanner.ScannerError(
                None, None, "found an escape above U+10FFFF", self.get_mark()
            ) from None


_FAST_LOADER: Any = getattr(yaml, "CSafeLoader", PureLoader)

_EXPLANATIONS = (
    (
        r"expected ',' or '}', but got '\['",
        "'[' ends the unquoted text before it; quote a type with brackets inside {...}, as in "
        'type: "list[int]"',
    ),
    (
        "expected ',' or '[]}]', but got '<stream end>'",
        "the bracket that opens on line {line} is not closed; close it",
    ),
    (
        "found unexpected end of stream",
        "the quote that opens on line {line} is not closed; close it",
    ),
    (
        "expected ',' or '[]}]', but got",
        "{problem}; put a comma between the items, quote text with special characters, or close "
        "the bracket that opens on line {line}",
    ),
    (r"found character '\\t'", "a tab; indent with spaces, not tabs"),
    (
        "found character (?P<char>'.') that cannot start",
        "unquoted text cannot start with {char}; quote the text",
    ),
    (
        "mapping values are not allowed",
        "a ': ' stands in unquoted text, or the line above lacks its ':'; quote the text or add "
        "the colon",
    ),
    (
        "mapping keys are not allowed",
        "a '?' stands where text begins; quote the text",
    ),
    (
        "sequence entries are not allowed",
        "a '- ' stands where no list can begin; start the list on a line of its own",
    ),
    (
        "found unknown escape character '(?P<char>.)'",
        r"unknown escape \{char} in double quotes; write \\ for a backslash, or use single quotes",
    ),
    (
        "found an escape above",
        r"an escape names no character; the largest is \U0010FFFF",
    ),
    (
        "could not find expected ':'",
        "line {line} lacks its ':' or a closing quote; write 'key: value'",
    ),
    ("but found ':'", "a ':' without a name before it; write the name"),
    (
        "expected <block end>|unindent|expected the node content",
        "this line does not continue what stands above it; indent it as its neighbours are",
    ),
    ("undefined tag handle", "{problem}; tags are not part of the schema language"),
    (
        "incompatible YAML document",
        "the %YAML line asks for another version; remove it",
    ),
)
"""Pattern of PyYAML's problem to what it means and what to do; the first that is found counts."""


def read_events(text: str, path: str, problems: Problems) -> list[Any] | None:
    """Return the events of one file, or None after reporting why it is not YAML."""
    line_break = re.search("[\x85\u2028\u2029]", text)
    if line_break:
        char = line_break[0]
        problems.add(
            place_at(text, line_break.start(), path),
            "yaml-syntax",
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
        mark = error.problem_mark or error.context_mark
        place = Place(path, mark.line + 1, mark.column + 1) if mark else Place(path)
        problems.add(place, "yaml-syntax", f"not valid YAML: {_explain(error)}")
    except yaml.reader.ReaderError as error:
        problems.add(
            place_at(text, error.position, path),
            "yaml-syntax",
            f"character U+{ord(text[error.position]):04X} is not allowed in YAML; remove it",
        )
    return None


def split_lines(text: str) -> list[str]:
    """Split as YAML does, once the rarer line breaks are refused."""
    return re.split("\r\n|[\r\n]", text)


def place_at(text: str, index: int, path: str) -> Place:
    """Return the place of a character of a file's text."""
    lines = split_lines(text[:index])
    return Place(path, len(lines), len(lines[-1]) + 1)


def _explain(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or "it cannot be read"
    opened = error.context_mark or error.problem_mark
    for pattern, explanation in _EXPLANATIONS:
        match = re.search(pattern, problem)
        if match:
            parts = {"line": opened.line + 1 if opened else 1, "problem": problem}
            for name, part in {**parts, **match.groupdict()}.items():
                explanation = explanation.replace(f"{{{name}}}", str(part))
            return explanation
    return problem

r"""Pages of Markdown as golden cases use them: headings, and fenced blocks with labels.

A line `` `schema/jobs.yaml`: `` is the label of the block under it. In a block marked `escaped`,
`\xNN` stands for a byte, `\uNNNN` for a character, and a `\` at the end of a line for no line feed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_HEADING = re.compile(r"(#+) (.+)")
_LABEL = re.compile(r"`([^`]+)`:")
_FENCE = re.compile(r"(`{3,})(\w+)( escaped)?")
_ESCAPE = re.compile(rb"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|([\\rt\n]))")
_UNESCAPED = {b"\\": b"\\", b"r": b"\r", b"t": b"\t", b"\n": b""}
_ESCAPED = {"\\": r"\\", "\r": r"\r", "\t": r"\t"}


@dataclass(frozen=True)
class Heading:
    """A heading; lines count from 0."""

    line: int
    level: int
    text: str


@dataclass(frozen=True)
class Block:
    """A fenced block, with its label where it has one."""

    label: str | None
    language: str
    data: bytes
    start: int
    """Line of the label, or of the fence where there is none."""
    fence: int
    end: int
    """Line after the block."""


def read(text: str) -> Iterator[Heading | Block]:
    """Yield the headings and blocks of a page.

    Raises:
        ValueError: with the number of the line, where a block is not written as above.
    """
    lines = text.removesuffix("\n").split("\n")
    label: tuple[int, str] | None = None
    number = 0
    while number < len(lines):
        line = lines[number]
        if fence := _FENCE.fullmatch(line):
            ticks, language, escaped = fence.groups()
            if ticks not in lines[number + 1 :]:
                raise ValueError(f"{number + 1}: this block does not end")
            end = lines.index(ticks, number + 1)
            data = "".join(f"{each}\n" for each in lines[number + 1 : end]).encode()
            if escaped:
                data = _unescape(data, number + 1)
            start, name = label or (number, None)
            yield Block(name, language, data, start, number, end + 1)
            label, number = None, end
        elif "```" in line or line.startswith(("~~~", "    ", "\t")):
            raise ValueError(f"{number + 1}: a block starts with ``` and its language")
        elif label and line:
            raise ValueError(f"{number + 1}: a block has to follow {label[1]!r}")
        elif heading := _HEADING.fullmatch(line):
            yield Heading(number, len(heading[1]), heading[2])
        elif match := _LABEL.fullmatch(line):
            label = number, match[1]
        number += 1
    if label:
        raise ValueError(f"{number}: a block has to follow {label[1]!r}")


def fenced(language: str, data: bytes) -> str:
    """Return a block; it is escaped where its data would not be seen or not stay as it is."""
    text = data.decode("utf-8", "surrogateescape")
    odd = {char for char in text if not char.isprintable()} - {"\n"}
    if odd or (text and not text.endswith("\n")):
        language += " escaped"
        # Where a line of the file ends in a carriage return alone, the block has a line for it.
        lines = re.split(r"(?<=\r)(?!\n|\Z)", text)
        text = "\\\n".join("".join(_escape(c, odd) for c in line) for line in lines)
        text += "" if text.endswith("\n") else "\\\n"
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}{fence}\n"


def _escape(char: str, odd: set[str]) -> str:
    if char in _ESCAPED:
        return _ESCAPED[char]
    if char not in odd:
        return char
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}"


def _unescape(data: bytes, line: int) -> bytes:
    if b"\\" in _ESCAPE.sub(b"", data):
        raise ValueError(rf"{line}: an escape other than \\ \r \t \xNN \uNNNN")

    def meaning(match: re.Match[bytes]) -> bytes:
        byte, code, short = match.groups()
        if byte:
            return bytes([int(byte, 16)])
        return chr(int(code, 16)).encode() if code else _UNESCAPED[short]

    return _ESCAPE.sub(meaning, data)

"""Python text in the layout of a formatter: 88 columns, exploded brackets with trailing commas.

Emitted modules pass `ruff format --check` as they are. Most lines are short by construction; a
bracket that does not fit is exploded with a trailing comma, which formatters keep, and the rare
line that cannot be laid out so carries `# fmt: skip`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

WIDTH = 88
SKIP = "  # fmt: skip"


@dataclass(frozen=True)
class Bracket:
    """`head` + items + `tail`, such as a call; items may be brackets again."""

    head: str
    items: tuple[Text, ...]
    tail: str
    separator: str
    """What stands between items; nothing between the parts of a comprehension."""
    inner: str
    """The items on one line."""
    flat: str
    """All of it on one line."""


Text: TypeAlias = str | Bracket


def flat(text: Text) -> str:
    """Write a text on one line."""
    return text if isinstance(text, str) else text.flat


def bracket(head: str, items: Sequence[Text], tail: str) -> Bracket:
    """A call, a list: items with commas between them."""
    return _bracket(head, items, tail, ",", "")


def comprehension(head: str, element: str, clause: str, tail: str) -> Bracket:
    """`[element for ... in ...]`, or the same of a dict."""
    return _bracket(head, (element, clause), tail, "", "")


def tuple_of(items: Sequence[Text]) -> Bracket:
    """A tuple display of any length."""
    return _bracket("(", items, ")", ",", "," if len(items) == 1 else "")


def _bracket(
    head: str, items: Sequence[Text], tail: str, separator: str, last: str
) -> Bracket:
    inner = f"{separator} ".join(map(flat, items))
    one_line = f"{head}{inner}{last}{tail}"
    return Bracket(head, tuple(items), tail, separator, inner, one_line)


@dataclass
class Code:
    """Lines of Python at an indentation."""

    lines: list[str] = field(default_factory=list)
    level: int = 0

    @contextmanager
    def indented(self) -> Iterator[None]:
        self.level += 1
        yield
        self.level -= 1

    def line(self, text: str) -> None:
        """Add a statement or clause that is written on one line."""
        indent = "    " * self.level
        skip = SKIP if len(indent) + len(text) > WIDTH else ""
        self.lines.append(f"{indent}{text}{skip}" if text else "")

    def fits(self, text: str) -> bool:
        return 4 * self.level + len(text) <= WIDTH

    def blank(self) -> None:
        self.lines.append("")

    def raw(self, text: str) -> None:
        """Add text as it is, indented: the inside of docstrings."""
        self.lines.append("    " * self.level + text if text else "")

    def clause(self, keyword: str, operands: Sequence[str], operator: str) -> None:
        """Add `if a or b:`, over several lines where it is too long for one."""
        one_line = f"{keyword} {f' {operator} '.join(operands)}:"
        if self.fits(one_line) or len(operands) == 1:
            self.line(one_line)
        else:
            self.chain(f"{keyword} (", operands, operator, "):")

    def chain(
        self, head: str, operands: Sequence[str], operator: str, tail: str
    ) -> None:
        """Add operands between two brackets, on a line of their own or on one each."""
        start = len(self.lines)
        self.raw(head)
        with self.indented():
            one_line = f" {operator} ".join(operands)
            if self.fits(one_line):
                self.raw(one_line)
            else:
                self.raw(operands[0])
                for operand in operands[1:]:
                    self.raw(f"{operator} {operand}")
        self.raw(tail)
        if any(len(line) > WIDTH for line in self.lines[start:]):
            one_line = f"{head}{one_line}{tail}"
            del self.lines[start:]
            self.line(one_line)

    def statement(self, prefix: str, text: Text, suffix: str = "") -> None:
        """Add `prefix` + an expression + `suffix`, exploding its brackets where needed."""
        if isinstance(text, str):
            self.line(f"{prefix}{text}{suffix}")
            return
        start = len(self.lines)
        self._explode(prefix, text, suffix)
        if any(len(line) > WIDTH for line in self.lines[start:]):
            self.lines[-1] += SKIP

    def _explode(self, prefix: str, text: Text, suffix: str) -> None:
        indent = "    " * self.level
        one_line = f"{indent}{prefix}{flat(text)}{suffix}"
        if isinstance(text, str) or len(one_line) <= WIDTH or not text.items:
            self.lines.append(one_line)
            return
        self.lines.append(f"{indent}{prefix}{text.head}")
        with self.indented():
            inner = text.inner
            if not text.separator and self.fits(inner):
                self.lines.append(f"{indent}    {inner}")
            else:
                for item in text.items:
                    self._explode("", item, text.separator)
        self.lines.append(f"{indent}{text.tail}{suffix}")


def literal(value: object) -> str:
    """Write a plain Python value; strings are ASCII and in the quotes that a formatter prefers."""
    if isinstance(value, str):
        return _quoted(value.encode("unicode_escape").decode("ascii"))
    if isinstance(value, bytes):
        return f"b{_quoted(value.decode('latin-1').encode('unicode_escape').decode('ascii'))}"
    return repr(value)


def _quoted(escaped: str) -> str:
    """Put quotes around a text in which everything but quotes is escaped already."""
    quote = "'" if escaped.count('"') > escaped.count("'") else '"'
    escaped = escaped.replace(quote, f"\\{quote}")
    return f"{quote}{escaped}{quote}"

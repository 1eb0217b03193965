"""Type expressions: the text of a field's type to a small syntax tree.

union    = postfix ("|" postfix)*
postfix  = atom ["?"]
atom     = NAME ["[" argument ("," argument)* "]"] | "(" union ")"
argument = union | INTEGER | "_" | "*"        (the last three in tensor[...] only)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from msgen.codegen.schema.rule import Rule

MAX_NESTING = 16
"""Levels of brackets that one type expression may have."""

_TOKEN = re.compile(
    r"\s*(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<int>[0-9]+)|(?P<mark>[][(),|?*]))"
)

_REMEDIES = {
    "<": "; arguments stand in brackets, as in list[int]",
    "-": "; in a tensor, '_' is a dimension of any size",
    "&": "; alternatives are written 'A | B'",
    ".": "; write the name alone",
}


@dataclass(frozen=True)
class NameExpr:
    """A name, with arguments when brackets follow it: `list[int]`."""

    offset: int
    name: str
    args: tuple[TypeExpr, ...] | None = None


@dataclass(frozen=True)
class SizeExpr:
    """A dimension that is no name: an integer or `*`."""

    offset: int
    text: str


@dataclass(frozen=True)
class NullableExpr:
    offset: int
    item: TypeExpr
    mark: int
    """The character of the `?`."""


@dataclass(frozen=True)
class UnionExpr:
    offset: int
    options: tuple[TypeExpr, ...]


TypeExpr: TypeAlias = NameExpr | SizeExpr | NullableExpr | UnionExpr


class TypeSyntaxError(Exception):
    """A type expression cannot be read.

    Attributes:
        offset: the character of the expression at which reading stopped, from 0.
        reason: what is wrong there.
    """

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.offset = offset
        self.reason = reason


def parse_type(text: str) -> TypeExpr:
    """Parse a type expression.

    Raises:
        TypeSyntaxError: the text is not of the grammar above.
    """
    parser = _Parser(text)
    expr = parser.union(0)
    offset, kind, token = parser.peek()
    if kind != "end":
        raise TypeSyntaxError(
            offset, f"'{token}' does not belong after a complete type"
        )
    return expr


TYPE_SYNTAX = Rule(
    "type-syntax",
    "the text of a type cannot be read",
    "What the field holds is unknown.",
    "write a type as in `int`, `Name`, `list[T]`, `tuple[A, B]`, `dict[K, V]`, `T?`, `(A | B)?` or "
    "`tensor[int32, seq]`.",
    parse_type,
)


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0

    def peek(self) -> tuple[int, str, str]:
        return self._tokens[self._at]

    def _take(self, token: str) -> bool:
        if self.peek()[2] == token:
            self._at += 1
            return True
        return False

    def _expect(self, token: str, where: str) -> None:
        if not self._take(token):
            offset, kind, found = self.peek()
            got = "the end" if kind == "end" else f"'{found}'"
            raise TypeSyntaxError(offset, f"expected '{token}' {where}, got {got}")

    def union(self, depth: int) -> TypeExpr:
        offset = self.peek()[0]
        options = [self._postfix(depth)]
        while self._take("|"):
            options.append(self._postfix(depth))
        return options[0] if len(options) == 1 else UnionExpr(offset, tuple(options))

    def _postfix(self, depth: int) -> TypeExpr:
        offset = self.peek()[0]
        expr = self._atom(depth)
        mark = self.peek()[0]
        if self._take("?"):
            expr = NullableExpr(offset, expr, mark)
            if self.peek()[2] == "?":
                raise TypeSyntaxError(
                    self.peek()[0], "'?' stands twice; once is enough"
                )
        return expr

    def _atom(self, depth: int) -> TypeExpr:
        offset, kind, token = self.peek()
        if depth > MAX_NESTING:
            raise TypeSyntaxError(
                offset,
                f"nested more than {MAX_NESTING} levels deep; use a struct for the inner part",
            )
        self._at += kind != "end"
        if kind == "name":
            return NameExpr(offset, token, self._arguments(depth, token))
        if kind == "int" or token == "*":
            return SizeExpr(offset, token)
        if token == "(":
            expr = self.union(depth + 1)
            self._expect(")", "to close '('")
            return expr
        got = "the end" if kind == "end" else f"'{token}'"
        raise TypeSyntaxError(offset, f"expected a type, got {got}")

    def _arguments(self, depth: int, name: str) -> tuple[TypeExpr, ...] | None:
        if not self._take("["):
            return None
        args = [self.union(depth + 1)]
        while self._take(","):
            args.append(self.union(depth + 1))
        self._expect("]", f"to close '{name}['")
        return tuple(args)


def _tokens(text: str) -> list[tuple[int, str, str]]:
    tokens = []
    at = 0
    end = len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            remedy = _REMEDIES.get(text[at], "")
            raise TypeSyntaxError(
                at, f"character '{text[at]}' is not part of a type{remedy}"
            )
        kind = match.lastgroup or ""
        tokens.append((match.start(kind), kind, match.group(kind)))
        at = match.end()
    tokens.append((end, "end", ""))
    return tokens

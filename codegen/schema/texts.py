"""Values and suggestions as the texts of errors show them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MAX_SHOWN = 60
"""Most characters of a value that an error repeats."""


def shown(text: str, quote: str = "'") -> str:
    """Return a value in quotes, cut when it is long."""
    if len(text) > MAX_SHOWN:
        text = f"{text[: MAX_SHOWN - 3]}..."
    return f"{quote}{text}{quote}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the nearest known name, or the empty string."""
    close = difflib.get_close_matches(name, sorted(known), n=1)
    return f"; did you mean '{close[0]}'?" if close else ""


def with_article(noun: str) -> str:
    """`enum` to `an enum`."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def counted(number: int, noun: str) -> str:
    """`1 item`, `2 items`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"

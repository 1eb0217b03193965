"""Ctrl-C and SIGTERM as one exception, from the first moment on."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(BaseException):
    """Raised by SIGINT and SIGTERM wherever the launcher is."""


@contextmanager
def interrupting() -> Iterator[None]:
    """Have SIGINT and SIGTERM raise Interrupted, also where the shell has SIGINT ignored."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Interrupted

    before = {
        number: signal.signal(number, interrupt)
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

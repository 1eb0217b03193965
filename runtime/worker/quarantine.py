"""The quarantine: messages that are not valid are left out, counted, and kept if wanted.

Every rank leaves out the same ones, since all decode the same bytes. Rank 0 alone writes of them.

The file of dead letters has one JSON object a line, appended: `time` (seconds since 1970), `step`,
`error` (the class), `path`, `reason`, `bytes` (of all frames), and `frames`, each in base64; null
where the message was too large to keep.
"""

from __future__ import annotations

import base64
import errno
import json
import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import Any

from msgen.runtime.errors import DecodeError
from msgen.runtime.queues import Frame

DEAD_LETTER_BYTES = 64 << 20
"""How large a file of dead letters becomes by default: enough to see a pattern, no disk fills up."""

_log = logging.getLogger(__name__)


class Quarantine:
    """Where rank 0 puts messages that are not valid: it logs each, and keeps it where there is a file.

    Args:
        letters: the file; None keeps nothing.
    """

    def __init__(self, letters: DeadLetters | None) -> None:
        self._letters = letters

    def take(self, step: int, frames: Sequence[Frame], error: DecodeError) -> None:
        """Note one message; without frames where none could be had."""
        _log.warning(
            "step %d: a request was left out, it is no valid message: %s: %s",
            step,
            type(error).__name__,
            error,
        )
        if self._letters is not None:
            self._letters.append(step, frames, error)


@dataclass(frozen=True)
class DeadLetter:
    """A message that was not valid.

    Attributes:
        time: when it was left out, in seconds since 1970.
        step: in which step.
        error: the name of the error's class.
        path, reason: the error's.
        frames: as they came, for `put_raw` or `codec.decode_frames`; None where it was too large.
    """

    time: float
    step: int
    error: str
    path: str
    reason: str
    frames: list[bytes] | None


class DeadLetters:
    """A file of dead letters, which only the user can read.

    Once it is full, it keeps no more; what does not fit is kept without its frames while it lasts.

    Args:
        path: of the file, which is made if need be and appended to.
        limit: bytes that it may have.

    Raises:
        OSError: it cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str], limit: int) -> None:
        self._path = os.fspath(path)
        self._limit = limit
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._file = os.open(path, flags, 0o600)
        self._full = False

    def append(self, step: int, frames: Sequence[Frame], error: DecodeError) -> None:
        """Keep a message with its error, if there is room."""
        data: list[Any] = [bytes(frame) for frame in frames]  # type: ignore[arg-type]
        size = sum(map(len, data))
        letter = {
            "time": time(),
            "step": step,
            "error": type(error).__name__,
            "path": error.path,
            "reason": error.reason,
            "bytes": size,
            "frames": None,
        }
        if data and size < self._limit:
            frames64 = [base64.b64encode(each).decode() for each in data]
            if self._write({**letter, "frames": frames64}):
                return
        self._write(letter)

    def _write(self, letter: dict[str, Any]) -> bool:
        """Append a letter; say whether there was room for it."""
        line = json.dumps(letter).encode() + b"\n"
        try:
            size = os.fstat(self._file).st_size
            if size + len(line) > self._limit:
                self._warn_of_limit()
                return False
            if os.write(self._file, line) < len(line):
                os.ftruncate(self._file, size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            # A full disk must not stop the engine.
            _log.warning("%s: cannot be written: %s", self._path, error.strerror)
        return True

    def _warn_of_limit(self) -> None:
        if not self._full:
            self._full = True
            _log.warning(
                "%s: the limit of %d bytes is reached; not every bad message is kept any more",
                self._path,
                self._limit,
            )

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def read_dead_letters(path: str | os.PathLike[str]) -> Iterator[DeadLetter]:
    """Read a file of dead letters.

    Raises:
        OSError: it cannot be read.
        ValueError: a line is not a dead letter.
    """
    with Path(path).open(encoding="utf-8") as lines:
        for line in lines:
            letter = json.loads(line)
            frames = letter["frames"]
            yield DeadLetter(
                letter["time"],
                letter["step"],
                letter["error"],
                letter["path"],
                letter["reason"],
                None if frames is None else [base64.b64decode(each) for each in frames],
            )

"""The guardian: a small process that ends a pool's ranks when their parent was killed.

Each rank watches its parent itself, in a thread. That takes Python's lock, which a handler may hold
for long, and a rank that still imports torch has no such thread yet. The guardian needs nothing of
the ranks. It is this file, run alone: it starts in a moment, and imports nothing but the standard
library, which also holds for what others take from here. Its parent sends it a line for each rank and
for each file to remove.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import time
from multiprocessing import spawn
from pathlib import Path

_GRACE_S = 0.5
"""What ranks get to end by themselves: they remove the files that they made."""
_ENDING_S = 1.0
"""What killed ranks get to be gone, before files are removed: the kernel frees large memory first."""
_DISMISS_S = 2.0
"""What the guardian gets to end by itself; it has nothing left to do, but the machine may be loaded."""


class Guardian:
    """The parent's end."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [os.fsdecode(spawn.get_executable()), "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )

    def watch(self, pid: int) -> None:
        """Tell of a rank."""
        self._tell(f"rank {pid}")

    def forget(self, pid: int) -> None:
        """Tell that a rank has ended."""
        self._tell(f"gone {pid}")

    def keep_clean(self, path: str | os.PathLike[str]) -> None:
        """Tell of a file to remove; a socket's file stays while somebody listens there."""
        self._tell(f"file {os.fsencode(path).hex()}")

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def dismiss(self) -> None:
        """End it: nothing is left to guard."""
        self._tell("done")
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(_DISMISS_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class _Guarded:
    """The ranks and files that the guardian has to clean up."""

    def __init__(self) -> None:
        self.ranks: dict[int, int | None] = {}
        self.files: list[Path] = []
        self.done = False

    def take(self, line: bytes) -> None:
        """Take a line of the parent's."""
        word, _, value = line.partition(b" ")
        if word == b"rank":
            self.ranks[int(value)] = open_process(int(value))
        elif word == b"gone":
            opened = self.ranks.pop(int(value), None)
            if opened is not None:
                os.close(opened)
        elif word == b"file":
            self.files.append(Path(os.fsdecode(bytes.fromhex(value.decode()))))
        elif word == b"done":
            self.done = True

    def end(self) -> None:
        """End the ranks, and remove the files."""
        if not self._wait(_GRACE_S):
            for pid in self._alive():
                signal_rank(pid, signal.SIGKILL)
            self._wait(_ENDING_S)
        for path in self.files:
            with contextlib.suppress(OSError):
                if not _is_used(path):
                    path.unlink()

    def _wait(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self._alive():
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.01)
        return True

    def _alive(self) -> list[int]:
        return [
            pid for pid, opened in self.ranks.items() if not _has_ended(pid, opened)
        ]


def open_process(pid: int) -> int | None:
    """Return a descriptor of a process, by which it is not taken for a later one of its number.

    It is readable once the process has ended. None where the system has none, or no such process.
    """
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError):
            return os.pidfd_open(pid)
    return None


def signal_rank(pid: int, number: int) -> None:
    """Send a signal to a rank, and to the processes that it started, if any of them lives."""
    with contextlib.suppress(OSError):
        if os.getpgid(pid) == pid:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)


def _has_ended(pid: int, opened: int | None) -> bool:
    if opened is not None:
        return bool(select.select([opened], [], [], 0)[0])
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False


def _is_used(path: Path) -> bool:
    """Say whether somebody listens on a socket's file."""
    if not stat.S_ISSOCK(path.lstat().st_mode):
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return False
        except OSError:
            pass
    return True


def main() -> None:
    """Take the parent's lines until it is done, or gone."""
    # A terminal sends Ctrl-C to all; how the ranks end is the parent's decision.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    guarded = _Guarded()
    source = sys.stdin.fileno()
    # A child that the parent forked may hold its end of the pipe open.
    parent = open_process(os.getppid())
    waited = [source] if parent is None else [source, parent]
    rest = b""
    while not guarded.done:
        ready = select.select(waited, [], [])[0]
        if source not in ready:
            break
        piece = os.read(source, 1 << 16)
        if not piece:
            break
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            guarded.take(line)
    if not guarded.done:
        guarded.end()


if __name__ == "__main__":
    main()

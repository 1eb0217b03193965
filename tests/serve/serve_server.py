"""A server of examples/serve for tests: started as people start it, watched from outside."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from processes import GENEROUS, until

ROOT = Path(__file__).parents[2]
MODEL = "SmolLM2-135M-Instruct"
CONTEXT = 512
PING_TIMEOUT_S = 3.0


class RunningServer:
    """A launcher, its processes, and what it has written.

    Attributes:
        url: where it serves.
        errors: the lines of its standard error so far.
        descendants: ids of its processes, known once it serves.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.url = ""
        self.errors: list[str] = []
        self.descendants: set[int] = set()
        # A mark in the environment finds what is left when nobody's parent is the launcher any more.
        self._mark = f"MSGEN_RUNTIME_DIR={folder}".encode()
        # Lines are read as they come; the library under test must not depend on buffering.
        self.launcher = subprocess.Popen(
            [sys.executable, "-m", "serve", "--port", "0", "--threads", "1", *options],
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT / "examples"),
                "MSGEN_RUNTIME_DIR": str(folder),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read_errors, daemon=True)
        self._reader.start()

    def _read_errors(self) -> None:
        assert self.launcher.stderr is not None
        for line in self.launcher.stderr:
            self.errors.append(line)

    def wait_serving(self) -> None:
        assert self.launcher.stdout is not None
        line = self.launcher.stdout.readline()
        assert line.startswith(f"serving {MODEL} at "), "".join(self.errors)
        self.url = line.split()[-1]
        self.descendants = self.alive() - {self.launcher.pid}

    def wait_line(self, start: str) -> None:
        """Wait until it has written a line that begins so."""
        until(lambda: any(line.startswith(start) for line in self.errors))

    @property
    def ranks(self) -> list[int]:
        """The process ids of the ranks, in order, as it says them."""
        (line,) = [line for line in self.errors if line.startswith("ranks: ready")]
        return [int(pid) for pid in re.findall(r"\d+(?=[,)])", line)]

    def alive(self) -> set[int]:
        """The ids of its processes that run, the launcher's too."""
        found = set()
        for path in Path("/proc").glob("[0-9]*"):
            try:
                marked = self._mark in (path / "environ").read_bytes().split(b"\0")
                state = (path / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if marked and state != "Z":
                found.add(int(path.name))
        return found

    def get(self, path: str) -> tuple[int, Any]:
        """The status and body of a GET; status 0 where nobody answers."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=GENEROUS) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)
        except OSError:
            return 0, None

    def stats(self) -> dict[str, int]:
        """What the scheduler says; waits for a machine that is too busy to answer in time."""
        answers: list[Any] = []

        def answered() -> bool:
            answers.append(self.get("/stats"))
            return bool(answers[-1][0] == 200)

        until(answered)
        body: dict[str, int] = answers[-1][1]
        return body

    def healthy(self) -> bool:
        return self.get("/health")[0] == 200

    def wait_end(self) -> int:
        """Wait until the launcher has ended; return its exit code, and leave all it wrote."""
        code = self.launcher.wait(GENEROUS)
        self._reader.join(GENEROUS)
        return code

    def assert_nothing_left(self) -> None:
        # Waited for in a way that then shows what is left.
        with suppress(AssertionError):
            until(lambda: not self.alive())
        assert [described(pid) for pid in self.alive()] == []
        with suppress(AssertionError):
            until(lambda: not list(self.folder.iterdir()))
        assert [path.name for path in self.folder.iterdir()] == []

    def end(self) -> None:
        """Have it end, whatever state it is in."""
        if self.launcher.poll() is None:
            self.launcher.send_signal(signal.SIGINT)
            try:
                self.launcher.wait(GENEROUS)
            except subprocess.TimeoutExpired:
                self.launcher.kill()
        for pid in self.alive():
            os.kill(pid, signal.SIGKILL)
        self.wait_end()
        assert self.launcher.stdout is not None and self.launcher.stderr is not None
        self.launcher.stdout.close()
        self.launcher.stderr.close()


def described(pid: int) -> str:
    """A process for people to read."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return f"{pid}, which has just ended"


@contextmanager
def starting(*options: str) -> Iterator[RunningServer]:
    """A server that has just been started; it is gone afterwards."""
    # Short, for the paths of sockets.
    with tempfile.TemporaryDirectory(prefix="msgen-", dir="/tmp") as folder:
        server = RunningServer(Path(folder), *options)
        try:
            yield server
        finally:
            server.end()


class Servers:
    """Running servers by the number of their ranks; one that a test has ended is started anew."""

    def __init__(self) -> None:
        self._running: dict[int, Any] = {}

    def with_ranks(self, ranks: int) -> RunningServer:
        context, server = self._running.get(ranks, (None, None))
        if server is not None and server.launcher.poll() is None:
            running: RunningServer = server
            return running
        self.end(ranks)
        context = starting(
            "--ranks", str(ranks), "--context", str(CONTEXT), "--max-running", "8",
            "--cache-tokens", "4096", "--ping-timeout", str(PING_TIMEOUT_S),
        )  # fmt: skip
        server = context.__enter__()
        self._running[ranks] = context, server
        server.wait_serving()
        return server

    def end(self, ranks: int) -> None:
        if ranks in self._running:
            self._running.pop(ranks)[0].__exit__(None, None, None)

    def end_all(self) -> None:
        for ranks in list(self._running):
            self.end(ranks)

"""The launcher's child processes and signals: starts them, watches them, and ends them."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from time import monotonic
from types import FrameType
from typing import Any, Final

from . import child
from .options import ServerFailed

START_METHOD: Final = "forkserver"
"""How processes are started: forked from one that has imported what they need, and has no threads."""

_CONTEXT = multiprocessing.get_context(START_METHOD)
_PRELOADED = [
    f"{__package__}.{name}"
    for name in ("api.server", "engine.handler", "text.detokenizer", "text.tokenizer")
]

_STOP_S = 20.0
"""What all get together to end in order: the API server first answers what is under way."""
_KILL_S = 5.0
"""What a killed process gets to be gone."""


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


def prepare() -> None:
    """Start the process that others are forked from; its imports go on beside the caller's own."""
    _CONTEXT.set_forkserver_preload(_PRELOADED)
    with _interrupts_blocked():
        forkserver.ensure_running()


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Keep SIGINT from processes that start now, until they ignore it themselves."""
    # Its start would unblock SIGINT.
    resource_tracker.ensure_running()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


class ChildProcess:
    """One child process and its pipe.

    Args:
        name: for people.
        main: what it runs; it gets `args`, and its end of the pipe behind them.

    Attributes:
        ready: whether it has said so.
    """

    def __init__(self, name: str, main: Callable[..., None], *args: Any) -> None:
        self.name = name
        self.ready = False
        self._pipe, theirs = _CONTEXT.Pipe()
        self._process: BaseProcess = _CONTEXT.Process(
            target=main, args=(*args, theirs), name=name
        )
        with _interrupts_blocked():
            self._process.start()
        theirs.close()
        self._error: str | None = None
        self._asked = False

    @property
    def waited_for(self) -> list[Connection | int]:
        """What is readable when it has sent something, or has ended."""
        return [self._pipe, self._process.sentinel]

    def look(self) -> str | None:
        """Return what is new: READY, or why it has failed."""
        with contextlib.suppress(EOFError, OSError):
            if self._pipe.poll():
                word = self._pipe.recv()
                if word == child.READY:
                    self.ready = True
                    return child.READY
                self._error = word
        if self._process.is_alive() and self._error is None:
            return None
        self._process.join(_KILL_S)
        return self._how_it_ended()

    def _how_it_ended(self) -> str:
        text = f"{self.name} (process {self._process.pid}) ended"
        code = self._process.exitcode
        if code is not None and code < 0:
            text += f" by signal {-code}"
        elif code:
            text += f" with exit code {code}"
        return text if self._error is None else f"{text}:\n{self._error}"

    def end(self, reason: str) -> None:
        """Ask it to end, and tell it why; a second time does nothing."""
        if self._asked:
            return
        self._asked = True
        if self.ready:
            with contextlib.suppress(OSError):
                self._pipe.send(reason)
        else:
            self._process.terminate()  # It may not listen yet.

    def join(self, deadline: float) -> None:
        """Wait until it has ended; past the deadline it is killed."""
        self._process.join(max(0.0, deadline - monotonic()))
        if self._process.is_alive():
            self.kill()

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.join(_KILL_S)


class Children:
    """All child processes, watched by one thread.

    Args:
        on_ready: is called with the name of each one that is ready, in that thread.
        on_failure: is called with what has become of one that ended, in that thread.
    """

    def __init__(
        self, on_ready: Callable[[str], None], on_failure: Callable[[str], None]
    ) -> None:
        self._on_ready = on_ready
        self._on_failure = on_failure
        self._all: list[ChildProcess] = []
        self._ready = 0
        self._starts: SimpleQueue[str | None] = SimpleQueue()
        self._ending = False
        self._thread: threading.Thread | None = None

    def start(self, name: str, main: Callable[..., None], *args: Any) -> ChildProcess:
        """Start one; all must be started before `watch`."""
        started = ChildProcess(name, main, *args)
        self._all.append(started)
        return started

    def watch(self) -> None:
        """Begin to watch them."""
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def wait_ready(self) -> None:
        """Wait until all are ready.

        Raises:
            ServerFailed: one has ended instead.
        """
        while self._ready < len(self._all):
            failure = self._starts.get()
            if failure is not None:
                raise ServerFailed(failure)
            self._ready += 1

    def _watch(self) -> None:
        by_waited = {each: one for one in self._all for each in one.waited_for}
        while not self._ending:
            for one in {by_waited[each] for each in wait(list(by_waited))}:  # type: ignore[index]
                word = one.look()
                if word == child.READY:
                    self._on_ready(one.name)
                    self._starts.put(None)
                elif word is not None:
                    if not self._ending:
                        self._starts.put(word)
                        self._on_failure(word)
                    return

    def stop(self, reason: str) -> None:
        """End all in order; what does not end in time is killed."""
        self._ending = True
        for one in self._all:
            one.end(reason)
        deadline = monotonic() + _STOP_S
        for one in self._all:
            one.join(deadline)

    def kill(self) -> None:
        """End all at once."""
        self._ending = True
        for one in self._all:
            one.kill()

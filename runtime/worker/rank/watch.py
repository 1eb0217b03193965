"""The watch of a rank's process: ends it with its parent, and follows the parent's orders.

A thread waits for the parent's pipe and for the parent itself. A parent that was killed cannot
order anything: its end of the pipe closes, and its process ends. Either is enough, since a forked
child of the parent may hold the pipe open.
"""

from __future__ import annotations

import os
import signal
import threading
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn

from msgen.runtime.sockets import context
from msgen.runtime.worker.step_io import StopRequest

from .guardian import open_process

DRAIN = b"drain"
STOP = b"stop"

_LOOK_EVERY_S = 0.5
"""Where the system has no descriptors of processes, a rank outlives its parent by that at most."""


class Watch:
    """Watches over the parent of this process.

    Args:
        pipe: from the parent; None where it gives no orders.
        parent: its process id.
        stop: what it asks for.
    """

    def __init__(self, pipe: Connection | None, parent: int, stop: StopRequest) -> None:
        self._pipe = pipe
        self._parent = parent
        self._stop = stop

    def start(self) -> None:
        """Begin to watch, in a thread that ends with the process."""
        # Made here: were the parent gone already, its number could be another one's later.
        threading.Thread(
            target=self._run,
            args=(open_process(self._parent),),
            name="msgen-watch",
            daemon=True,
        ).start()

    def _run(self, parent_end: int | None) -> None:
        waited: list[Any] = [
            each for each in (self._pipe, parent_end) if each is not None
        ]
        # Where a process has no descriptor, its children's new parent tells of its end.
        looks = parent_end is None and os.getppid() == self._parent
        while True:
            ready = wait(waited, _LOOK_EVERY_S if looks else None)
            if parent_end in ready or (looks and os.getppid() != self._parent):
                leave()
            if self._pipe in ready:
                self._follow_order()

    def _follow_order(self) -> None:
        assert self._pipe is not None
        try:
            order = self._pipe.recv_bytes()
        except (EOFError, OSError):
            leave()
        if order == DRAIN:
            self._stop.drain()
        elif order == STOP:
            self._stop.stop()


def leave() -> NoReturn:
    """End this process at once, with the processes that it started, and leave no socket files."""
    context.remove_files()
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)

"""What the launcher's child processes share: a pipe to the launcher, and how they end.

Through the pipe a child says when it is ready or why it failed, and the launcher tells it to end, and
why. Its closing means that the launcher is gone, however that came about. The child ends itself in
both cases as it does at SIGTERM: in order, so that no socket file stays.

SIGINT is ignored. A terminal sends it to all processes at once, and the order in which they end is
the launcher's affair.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from types import FrameType

READY = "ready"
"""What a child says when it can take messages; anything else is why it failed."""

_ORPHAN_S = 15.0
"""What a child gets to end in order once the launcher is gone; then it ends at once."""


class Stopped(BaseException):
    """Raised by SIGTERM wherever the process is; not an Exception, so that none swallows it."""


def run(
    pipe: Connection,
    work: Callable[[Callable[[], None]], None],
    end: Callable[[str], None] | None = None,
) -> None:
    """Do a child's work until it is told to end.

    Args:
        pipe: to the launcher.
        work: is called with a function to call when it is ready. SIGTERM raises Stopped in it, unless
            it has set a handler of its own.
        end: is called, in another thread, with the reason why to end; without it, that is like SIGTERM.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The launcher has blocked it, so that none comes before it is ignored.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGTERM, _raise_stopped)
    listening = threading.Thread(
        target=_listen, args=(pipe, end or _end_like_sigterm), daemon=True
    )
    listening.start()
    try:
        work(lambda: pipe.send(READY))
    except Stopped:
        pass
    except Exception:
        pipe.send(traceback.format_exc())
        raise SystemExit(1) from None


def _raise_stopped(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # Once is enough.
    raise Stopped


def _end_like_sigterm(reason: str) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def _listen(pipe: Connection, end: Callable[[str], None]) -> None:
    try:
        while True:
            end(pipe.recv())
    except (EOFError, OSError):
        end("the launcher is gone")
        time.sleep(_ORPHAN_S)
        os._exit(1)

"""The process's ZeroMQ context, and the sockets that are open in it.

There is one context a process. It is msgen's own, so that nobody else's open socket can keep it
from ending. A forked child cannot use its parent's: there every endpoint is marked as foreign, and
the next one that is made gets a new context.

When the process exits, what is still open is closed, and messages on their way out get the time
that their endpoints allow for lingering.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import weakref
from multiprocessing import util
from time import monotonic
from typing import Any, Protocol

import zmq

_log = logging.getLogger(__name__)

_MAX_SOCKETS = 16_384
"""Sockets in the context: a sending queue needs three, and libzmq's default is 1,023 in all."""
_EXIT_PATIENCE_S = 2.0
"""How long the exit waits for daemon threads to let go of the queues that they still use."""


class Resident(Protocol):
    """What lives in the context and ends with it.

    Attributes:
        linger_s: seconds that its messages get when it is closed.
    """

    linger_s: float

    def owner(self) -> int:
        """The identifier of the thread that uses it."""

    def close_at_exit(self, deadline: float) -> None:
        """Close it by then, from whatever thread exits."""

    def disown(self) -> None:
        """Make it refuse all use: this process is a forked child."""


class _Home:
    """The context and its residents, in one process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.context.set(zmq.MAX_SOCKETS, _MAX_SOCKETS)
        self.residents: weakref.WeakSet[Any] = weakref.WeakSet()
        self._term_now = threading.Event()
        self._terminated = threading.Event()
        self._closer: threading.Thread | None = None

    def settle(self, resident: Resident) -> None:
        self.residents.add(resident)
        if threading.current_thread() is not threading.main_thread():
            self._start_closer()

    def close(self) -> None:
        """Close every resident, then end the context once their messages are out."""
        linger_s = max((each.linger_s for each in self.residents), default=0.0)
        deadline = monotonic() + linger_s
        in_use = [each for each in list(self.residents) if not _close(each, deadline)]
        if not in_use:
            self.context.term()
        elif self._closer is not None:
            # A daemon thread still uses a queue, perhaps inside a call that waits. Ending the
            # context ends that call with an error, but returns only when the queue is closed.
            self._term_now.set()
            self._terminated.wait(linger_s + _EXIT_PATIENCE_S)

    def _start_closer(self) -> None:
        """Have a thread at hand that ends the context: at exit, none can be started any more."""
        if self._closer is None:
            self._closer = threading.Thread(
                target=self._end_context, name="msgen-closer", daemon=True
            )
            self._closer.start()

    def _end_context(self) -> None:
        self._term_now.wait()
        self.context.term()
        self._terminated.set()


def _close(resident: Resident, deadline: float) -> bool:
    """Close a resident unless another thread may be using it."""
    owner = resident.owner()
    mine = owner == threading.get_ident()
    if not mine and any(thread.ident == owner for thread in threading.enumerate()):
        return False
    try:
        resident.close_at_exit(deadline)
    except Exception:
        _log.exception("%r could not be closed in order", resident)
    return True


_lock = threading.Lock()
_home: _Home | None = None
_abandoned: list[_Home] = []


def context() -> zmq.Context[zmq.Socket[bytes]]:
    """Return the process's context."""
    return _get_home().context


def settle(resident: Resident) -> None:
    """Have a resident closed when the process exits, and disowned when it forks."""
    _get_home().settle(resident)


def leave(resident: Resident) -> None:
    """Forget a resident that has been closed."""
    if _home is not None:
        _home.residents.discard(resident)


def remove_files() -> None:
    """Remove the socket files of what is open, for a process that is about to end at once."""
    if _home is not None:
        for resident in list(_home.residents):
            remove = getattr(resident, "remove_socket_file", None)
            if remove is not None:
                remove()


def _get_home() -> _Home:
    global _home
    with _lock:
        if _home is None:
            _home = _Home()
            # Children of multiprocessing that were forked end without atexit's functions.
            util.Finalize(None, close_all, exitpriority=0)
        return _home


@atexit.register
def close_all() -> None:
    """Close everything that is open; what the process's exit does."""
    global _home
    home, _home = _home, None
    if home is not None and home.pid == os.getpid():
        home.close()


def _after_fork_in_child() -> None:
    global _home, _lock
    _lock = threading.Lock()
    if _home is not None:
        for resident in _home.residents:
            resident.disown()
        # Ending the parent's context here would hang: its threads were not copied.
        _abandoned.append(_home)
        _home = None


os.register_at_fork(after_in_child=_after_fork_in_child)

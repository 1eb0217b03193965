"""The process's ZeroMQ context, and what is closed before it ends.

There is one context a process. It is msgen's own, so that nobody else's open socket can keep it
from ending. A forked child cannot use its parent's: there every endpoint refuses use, and the next
one that is made gets a new context.

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

import zmq

_log = logging.getLogger(__name__)

_MAX_SOCKETS = 16_384
"""Sockets in the context: a sending queue needs three, and libzmq's default is 1,023 in all."""
_EXIT_PATIENCE_S = 2.0
"""Beyond lingering, for daemon threads to let go of their queues: a call that waits ends at once."""


class Resource:
    """What is open in the context and has to be closed before it ends.

    Attributes:
        linger_s: seconds that its messages get when it is closed.
    """

    linger_s = 0.0

    def owner(self) -> int:
        """Return the identifier of the thread that uses it."""
        return threading.get_ident()

    def close_at_exit(self, deadline: float) -> None:
        """Close it by then, from whatever thread exits."""
        raise NotImplementedError

    def disown(self) -> None:
        """Refuse all use: this process is a forked child."""
        raise NotImplementedError

    def remove_socket_file(self) -> None:
        """Remove its file, from any thread, before the process is ended."""


class _Context:
    """The ZeroMQ context and what is open in it."""

    def __init__(self) -> None:
        self.zmq_context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.zmq_context.set(zmq.MAX_SOCKETS, _MAX_SOCKETS)
        self.resources: weakref.WeakSet[Resource] = weakref.WeakSet()
        self._term_now = threading.Event()
        self._terminated = threading.Event()
        self._closer: threading.Thread | None = None

    def register(self, resource: Resource) -> None:
        self.resources.add(resource)
        in_main = threading.current_thread() is threading.main_thread()
        if self._closer is None and not in_main:
            # At exit, when it is needed, no thread can be started any more.
            self._closer = threading.Thread(
                target=self._terminate, name="msgen-closer", daemon=True
            )
            self._closer.start()

    def close(self) -> None:
        """Close every resource, then end the context once their messages are out."""
        linger_s = max((each.linger_s for each in self.resources), default=0.0)
        deadline = monotonic() + linger_s
        in_use = [each for each in list(self.resources) if not _close(each, deadline)]
        if not in_use:
            self.zmq_context.term()
        elif self._closer is not None:
            # A daemon thread still uses a queue, perhaps inside a call that waits. Ending the
            # context ends that call with an error, but returns only when the queue is closed.
            self._term_now.set()
            self._terminated.wait(linger_s + _EXIT_PATIENCE_S)

    def _terminate(self) -> None:
        self._term_now.wait()
        self.zmq_context.term()
        self._terminated.set()


def _close(resource: Resource, deadline: float) -> bool:
    """Close a resource unless another thread may be using it."""
    owner = resource.owner()
    mine = owner == threading.get_ident()
    if not mine and any(thread.ident == owner for thread in threading.enumerate()):
        return False
    try:
        resource.close_at_exit(deadline)
    except Exception:
        _log.exception("%r could not be closed in order", resource)
    return True


lock = threading.RLock()
"""Guards what a process has one of; a forked child gets a new one."""
_current: _Context | None = None
_parents: list[_Context] = []
"""Kept in a forked child: to end a parent's context there would hang, its threads are missing."""


def context() -> zmq.Context[zmq.Socket[bytes]]:
    """Return the process's context."""
    return _get().zmq_context


def register(resource: Resource) -> None:
    """Have a resource closed when the process exits, and disowned when it forks."""
    _get().register(resource)


def unregister(resource: Resource) -> None:
    """Forget a resource that has been closed."""
    if _current is not None:
        _current.resources.discard(resource)


def remove_files() -> None:
    """Remove the socket files of what is open, for a process that is about to end at once."""
    if _current is not None:
        for resource in list(_current.resources):
            resource.remove_socket_file()


def _get() -> _Context:
    global _current
    with lock:
        if _current is None:
            _current = _Context()
            # Children of multiprocessing that were forked end without atexit's functions.
            util.Finalize(None, close_all, exitpriority=0)
        return _current


@atexit.register
def close_all() -> None:
    """Close everything that is open; what the process's exit does."""
    global _current
    closing, _current = _current, None
    if closing is not None:
        closing.close()


def _after_fork_in_child() -> None:
    global _current, lock
    lock = threading.RLock()
    if _current is not None:
        for resource in _current.resources:
            resource.disown()
        _parents.append(_current)
        _current = None


os.register_at_fork(after_in_child=_after_fork_in_child)

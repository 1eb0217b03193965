"""Outflow: whether all that was put on a socket has reached the other process.

libzmq's linger does not wait for that (libzmq #1922, #4660). A closing socket drops what the I/O
thread has taken from it and could not write yet, because the receiver is slow and the system's
buffer is full. And a receiver that is held up by its high-water mark, and so does not read, drops
what is left in the system's buffer when it learns that the connection is closed. So a queue asks
before it closes. libzmq does not tell, but Linux does: while the I/O thread has something to write
to a connection, it watches it for becoming writable, and `/proc/self/fdinfo` shows what is watched
for what; and a socket's output queue can be asked for its length. For ipc that is what the receiver
has not read yet; for tcp, what its system has not acknowledged.

Elsewhere than on Linux nothing is known, and libzmq's linger has to do.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import select
import sys
import termios
from pathlib import Path
from time import monotonic
from typing import Any

import zmq

from .monitor import Monitor, io_round_trip

KNOWN = sys.platform == "linux"
"""Whether the system tells."""

LOOK_EVERY_S = 0.002
"""Seconds between looks at what nothing signals."""
_PATIENCE_S = 60.0
_REUNION_S = 0.2
"""Seconds to wait for a receiver that was there and has gone."""
_CONNECTED = zmq.EVENT_CONNECTED | zmq.EVENT_ACCEPTED
_EVENTS = (
    _CONNECTED
    | zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_DISCONNECTED
)


class Outflow:
    """Watches the connections of a sending socket.

    Args:
        socket: which has neither been bound nor connected yet.
        connects: whether it will connect: then it may hold messages without a connection.

    Attributes:
        receiver_left: the receiver was there and has gone, so nobody knows what it took.
        descriptor: readable when something happens to a connection.
    """

    receiver_left = False
    _refused = False

    def __init__(self, socket: zmq.Socket[Any], *, connects: bool) -> None:
        self._context = socket.context
        self._connects = connects
        self._connections: set[int] = set()
        self._monitor = Monitor(socket, _EVENTS)
        self.descriptor = self._monitor.descriptor
        self._speaks = False
        self._reunion: float | None = None

    def close(self) -> None:
        """Watch no more."""
        self._monitor.close()

    def refused(self) -> bool:
        """Say whether the peer did not let this end in; ZeroMQ does not try again then."""
        self._take_events()
        return self._connects and self._refused

    def ended(self) -> bool:
        """Say whether everything has arrived; True as well where the context is ending."""
        try:
            return not self._blocked()
        except zmq.ContextTerminated:
            return True

    def wait(self, deadline: float | None) -> bool:
        """Wait until everything has arrived; False where it had not by the deadline."""
        try:
            while blocked := self._blocked():
                left = None if deadline is None else deadline - monotonic()
                if left is not None and left <= 0:
                    return False
                waiting = select.poll()
                # Nothing signals that a queue in the system is empty.
                pause = LOOK_EVERY_S if left is None else min(left, LOOK_EVERY_S)
                for descriptor, event in blocked.items():
                    if event:
                        waiting.register(descriptor, event)
                        pause = _PATIENCE_S if left is None else left
                waiting.poll(math.ceil(pause * 1000))
        except zmq.ContextTerminated:
            pass
        return not self.receiver_left

    def _blocked(self) -> dict[int, int]:
        """Return the descriptors on which the outflow waits, and for which event; none at its end."""
        io_round_trip(self._context)
        self._take_events()
        # An end that connects has one connection; nothing leaves before both sides have greeted.
        if self._connects and not self._speaks:
            return self._disconnected()
        blocked = dict.fromkeys(filter(_unread, self._connections), 0)
        for descriptor in _watched_for_writing() & self._connections:
            blocked[descriptor] = select.POLLOUT
        return blocked

    def _take_events(self) -> None:
        while event := self._monitor.next():
            kind, descriptor = event
            if kind & _CONNECTED:
                self._connections.add(descriptor)
            elif kind == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self._speaks = True
                self._reunion = math.inf
                self.receiver_left = False
            elif kind == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
                self._refused = True
            else:
                self._connections.discard(descriptor)
                self._speaks = False

    def _disconnected(self) -> dict[int, int]:
        """Wait for a connection; but where there was one, not long.

        A receiver that stopped first has most likely taken everything, and one that starts again is
        back soon. libzmq does not say whether messages are left.
        """
        if self._reunion is not None:
            now = monotonic()
            self._reunion = min(self._reunion, now + _REUNION_S)
            if now >= self._reunion:
                self.receiver_left = True
                return {}
            return {self._monitor.descriptor: 0}
        return {self._monitor.descriptor: select.POLLIN}


def _unread(descriptor: int) -> bool:
    """Say whether the system still holds bytes that were written to a connection."""
    try:
        return fcntl.ioctl(descriptor, termios.TIOCOUTQ, bytes(4)) != bytes(4)
    except OSError:
        return False  # It has been closed meanwhile.


def _watched_for_writing() -> set[int]:
    """Return the descriptors that some epoll instance of this process watches to become writable."""
    found: set[int] = set()
    for link in Path("/proc/self/fd").iterdir():
        # A descriptor may have been closed meanwhile.
        with contextlib.suppress(OSError):
            if str(link.readlink()) != "anon_inode:[eventpoll]":
                continue
            info = Path("/proc/self/fdinfo") / link.name
            for line in info.read_text().splitlines():
                if line.startswith("tfd:"):
                    _, descriptor, _, events, *_ = line.split()
                    if int(events, 16) & select.EPOLLOUT:
                        found.add(int(descriptor))
    return found

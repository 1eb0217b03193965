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
import time
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import zmq

from .monitor import Monitor, io_round_trip

KNOWN = sys.platform == "linux"
"""Whether the system tells."""

_FIRST_PAUSE_S = 0.002
_LONGEST_PAUSE_S = 0.05
"""Between looks, which cost half a millisecond each; nothing signals that a system's queue is empty."""
_RETURN_S = 0.2
"""For a receiver that was there and has gone: one that starts again connects within this time."""
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
        arrived: whether `looks` ended because everything had arrived.
        receiver_left: the receiver was there and has gone, so nobody knows what it took.
    """

    def __init__(self, socket: zmq.Socket[Any], *, connects: bool) -> None:
        self.arrived = False
        self.receiver_left = False
        self._context = socket.context
        self._connects = connects
        self._connections: set[int] = set()
        self._monitor = Monitor(socket, _EVENTS)
        self._refused = False
        self._greeted = False
        self._give_up_at: float | None = None

    def close(self) -> None:
        """Watch no more."""
        self._monitor.close()

    def refused(self) -> bool:
        """Say whether the peer did not let this end in; ZeroMQ does not try again then."""
        self._take_events()
        return self._connects and self._refused

    def looks(self, deadline: float) -> Iterator[float]:
        """Look until everything has arrived or the deadline has passed; `arrived` says which.

        Yields:
            Seconds to pause before the next look.
        """
        self.arrived = False
        pause = _FIRST_PAUSE_S
        while not self._ended():
            left = deadline - monotonic()
            if left <= 0:
                return
            yield min(pause, left)
            pause = min(1.5 * pause, _LONGEST_PAUSE_S)
        self.arrived = not self.receiver_left

    def wait(self, deadline: float) -> bool:
        """Wait until everything has arrived; False where it had not by the deadline."""
        for pause in self.looks(deadline):
            time.sleep(pause)
        return self.arrived

    def _ended(self) -> bool:
        """Say whether nothing is to be waited for, as where the context is ending."""
        try:
            io_round_trip(self._context)
        except zmq.ContextTerminated:
            return True
        self._take_events()
        # An end that connects has one connection; nothing leaves before both sides have greeted.
        if self._connects and not self._greeted:
            return self._given_up()
        return not (
            any(map(_unread, self._connections))
            or _watched_for_writing() & self._connections
        )

    def _take_events(self) -> None:
        while event := self._monitor.next():
            kind, descriptor = event
            if kind & _CONNECTED:
                self._connections.add(descriptor)
            elif kind == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self._greeted = True
                self._give_up_at = math.inf
                self.receiver_left = False
            elif kind == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
                self._refused = True
            else:
                self._connections.discard(descriptor)
                self._greeted = False

    def _given_up(self) -> bool:
        """Say whether a receiver that was there has been gone for too long.

        One that stopped first has most likely taken everything, and one that starts again is back
        soon. libzmq does not say whether messages are left.
        """
        if self._give_up_at is not None:
            now = monotonic()
            self._give_up_at = min(self._give_up_at, now + _RETURN_S)
            self.receiver_left = now >= self._give_up_at
        return self.receiver_left


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

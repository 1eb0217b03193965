"""Monitors: what ZeroMQ's I/O thread tells of a socket's connections."""

from __future__ import annotations

import contextlib
import itertools
import secrets
from typing import Any

import zmq
from zmq.utils.monitor import parse_monitor_message

_numbers = itertools.count()
_ROUND_TRIP_MS = 5000
"""A bound only: the I/O thread answers in microseconds, unless the machine is overloaded."""


class Monitor:
    """Receives the events of a socket.

    It holds any number of them, and is closed before the socket that receives them: were there no
    room for an event, or nobody to receive it, ZeroMQ's I/O thread would stand still for ever.

    Args:
        socket: what to watch; it has one monitor at a time.
        events: which events.

    Attributes:
        descriptor: readable when an event comes.
    """

    def __init__(self, socket: zmq.Socket[Any], events: int) -> None:
        where = f"inproc://msgen-monitor-{next(_numbers)}"
        self._socket = socket
        socket.monitor(where, events)
        self._events: zmq.Socket[Any] = socket.context.socket(zmq.PAIR)
        self._events.set(zmq.LINGER, 0)
        self._events.set(zmq.RCVHWM, 0)
        self._events.connect(where)
        self.descriptor = int(self._events.get(zmq.FD))

    def next(self) -> tuple[int, int] | None:
        """Return the next event that is there, and its value; None where there is none."""
        try:
            frames = self._events.recv_multipart(zmq.DONTWAIT)
        except zmq.Again:
            return None
        message = parse_monitor_message(frames)
        return int(message["event"]), int(message["value"])

    def wait(self, timeout_ms: int) -> bool:
        """Wait for an event; False where none came in time."""
        return bool(self._events.poll(timeout_ms))

    def close(self) -> None:
        """Watch no more."""
        if not self._socket.closed:
            with contextlib.suppress(zmq.ContextTerminated):
                self._socket.monitor(None, 0)
        self._events.close(linger=0)


def io_round_trip(context: zmq.Context[Any]) -> None:
    """Wait until the I/O thread has done what was asked of it before this call."""
    with (
        context.socket(zmq.PAIR) as probe,
        contextlib.closing(Monitor(probe, zmq.EVENT_CLOSED)) as monitor,
    ):
        # Freeing an address is the I/O thread's work, and it says when it is done. The name is in
        # Linux's abstract namespace: there is no file.
        probe.bind(f"ipc://@msgen-{secrets.token_hex(8)}")
        probe.close(linger=0)
        monitor.wait(_ROUND_TRIP_MS)

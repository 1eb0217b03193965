"""Queues: a codec and a ZeroMQ socket, as thin as that.

This is the plain core: PUSH and PULL with blocking calls. Addresses are ZeroMQ's, such as
`ipc:///run/engine/backend` or `tcp://127.0.0.1:5555`. A queue belongs to the thread that made it.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Generic, TypeVar

import zmq

from .codec import Codec
from .errors import QueueClosed, QueueEmpty, QueueFull

M = TypeVar("M")
Q = TypeVar("Q", bound="_Queue[Any]")

HIGH_WATER_MARK = 1000
"""Messages that a queue holds on each side before it makes its sender wait."""
LINGER_MS = 1000
"""Milliseconds that `stop` waits for messages still on their way out."""


class _Queue(Generic[M]):
    """What all queues share: the socket's life.

    Args:
        addr: where the two ends meet.
        create: True for the end that binds, False for the one that connects.
        codec: of the group whose messages the queue carries.
    """

    _socket_type: int

    def __init__(self, addr: str, create: bool, codec: Codec[M]) -> None:
        self._codec = codec
        socket: zmq.Socket[bytes] = zmq.Context.instance().socket(self._socket_type)
        socket.set_hwm(HIGH_WATER_MARK)
        socket.linger = LINGER_MS
        try:
            if create:
                socket.bind(addr)
            else:
                socket.connect(addr)
        except BaseException:
            socket.close(linger=0)
            raise
        self._socket: zmq.Socket[bytes] | None = socket
        self.addr = socket.getsockopt_string(zmq.LAST_ENDPOINT) if create else addr

    @property
    def _open_socket(self) -> zmq.Socket[bytes]:
        if self._socket is None:
            raise QueueClosed(f"{self.addr}: the queue is stopped; make a new one")
        return self._socket

    def stop(self) -> None:
        """Close the socket; more than once does no harm."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def __enter__(self: Q) -> Q:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


class ZmqPushQueue(_Queue[M]):
    """The sending end."""

    _socket_type = zmq.PUSH

    def put(self, msg: M, timeout: float | None = None) -> None:
        """Send a message.

        Large payloads travel in frames of their own; all are copied, so the caller may change
        the message at once.

        Args:
            msg: a message of the codec's group.
            timeout: seconds to wait while the queue is full; None waits for ever.

        Raises:
            EncodeError: the message does not fit its schema; nothing was sent.
            QueueFull: nothing could be sent in time.
            QueueClosed: after `stop`.
        """
        self.put_raw(self._codec.encode_frames(msg), timeout)

    def put_raw(self, frames: list[Any], timeout: float | None = None) -> None:
        """Send frames that are encoded already, such as those of `get_raw`."""
        socket = self._open_socket
        if not socket.poll(_milliseconds(timeout), zmq.POLLOUT):
            raise QueueFull(f"{self.addr}: no peer took a message within {timeout} s")
        socket.send_multipart(frames, copy=True)


class ZmqPullQueue(_Queue[M]):
    """The receiving end."""

    _socket_type = zmq.PULL

    def get(self, timeout: float | None = None) -> M:
        """Receive a message.

        Args:
            timeout: seconds to wait for one; None waits for ever.

        Raises:
            DecodeError: what arrived is no valid message; it is taken off the queue, and the
                next call gets the next one.
            QueueEmpty: nothing arrived in time.
            QueueClosed: after `stop`.
        """
        return self.decode(self.get_raw(timeout))

    def get_raw(self, timeout: float | None = None) -> list[bytes]:
        """Receive the frames of a message without decoding them."""
        socket = self._open_socket
        if not socket.poll(_milliseconds(timeout), zmq.POLLIN):
            raise QueueEmpty(f"{self.addr}: no message arrived within {timeout} s")
        return socket.recv_multipart()

    def decode(self, frames: list[bytes]) -> M:
        """Decode frames of `get_raw`."""
        return self._codec.decode_frames(frames)

    def empty(self) -> bool:
        """Say whether `get` would have to wait."""
        return not self._open_socket.poll(0, zmq.POLLIN)


def _milliseconds(timeout: float | None) -> int | None:
    return None if timeout is None else max(0, round(timeout * 1000))

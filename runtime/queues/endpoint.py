"""Endpoints: a ZeroMQ socket with an owner, a bounded life and waits that end.

An endpoint belongs to the thread that made it: ZeroMQ sockets are not safe to share. One comparison
per call, of the caller's thread with the owner, finds all three ways of using it wrongly: a second
thread, a forked child, and use after `stop` (a stopped or disowned endpoint is owned by nobody).

Waits are on the descriptor that ZeroMQ signals when anything has happened to the socket. It is
edge-triggered: it tells of events since the socket was last looked at, so a wait always follows a
look that found nothing.
"""

from __future__ import annotations

import contextlib
import enum
import math
import os
import select
import threading
import warnings
from dataclasses import dataclass
from threading import get_ident
from time import monotonic
from types import TracebackType
from typing import Any, ClassVar, Final, NoReturn, TypeAlias, TypedDict, TypeVar

import zmq
from msgen.runtime.errors import QueueClosed, WrongProcess, WrongThread
from msgen.runtime.sockets import addresses, binding, context
from msgen.runtime.sockets.curve import Curve
from msgen.runtime.sockets.monitor import Monitor

HIGH_WATER_MARK = 1000
"""Messages that each end holds before the sender has to wait."""
MAX_MESSAGE_BYTES = 1 << 30
"""Bytes of the largest message that passes."""
LINGER_S = 1.0
"""Seconds that messages on their way out get after `stop`, and at the process's exit."""

_NOBODY = -1
_CLOSING_PATIENCE_MS = 5000
_LONGEST_POLL_S = 1e6
_KEEPALIVE_IDLE_S = 10
_KEEPALIVE_INTERVAL_S = 5
_KEEPALIVE_PROBES = 4
_RECONNECT_MS = 10
_RECONNECT_MAX_MS = 500

E = TypeVar("E", bound="Endpoint")


class Default(enum.Enum):
    """The type of `DEFAULT`."""

    DEFAULT = "the queue's own timeout"


DEFAULT: Final = Default.DEFAULT
"""Stands for the timeout that the queue was made with."""

Timeout: TypeAlias = float | Default | None
"""Seconds to wait; None waits for ever, 0 not at all."""


class Options(TypedDict, total=False):
    """The options that all endpoints have; `Endpoint` says what they mean."""

    hwm: int
    max_message_bytes: int
    linger: float
    timeout: float | None
    security: Curve | None
    insecure: bool


@dataclass(frozen=True)
class QueueStats:
    """What has passed an endpoint since it was made.

    Attributes:
        messages: sent or received.
        bytes: of their frames.
        decode_errors: how many of the received ones were no valid messages.
        waiting: messages known to wait here. ZeroMQ does not count them, so this is 1 where the
            next one is there, plus those that `get_many` holds back; 0 on the sending side.
    """

    messages: int
    bytes: int
    decode_errors: int
    waiting: int


class Endpoint:
    """A bound or connected ZeroMQ socket, used by the thread that made it.

    Args:
        addr: where the two ends meet.
        create: True for the end that binds, False for one that connects.
        hwm: messages that this end holds before the sender has to wait.
        max_message_bytes: ZeroMQ drops a peer that announces a larger frame, before it allocates
            memory for it; a larger message is not sent, and not decoded.
        linger: seconds that messages on their way out get after `stop`, and at exit.
        timeout: seconds that calls wait by default; None waits for ever.
        security: CURVE keys, for tcp.
        insecure: lets an address that other machines reach be bound without keys.

    Raises:
        AddressError: the address is malformed or cannot be used; AddressInUse and
            InsecureAddress say so more closely.
        ValueError: an option is out of range.
    """

    _socket_type: ClassVar[int]
    _socket: zmq.Socket[bytes] | None = None

    def __init__(
        self,
        addr: str,
        create: bool,
        *,
        hwm: int = HIGH_WATER_MARK,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
        linger: float = LINGER_S,
        timeout: float | None = None,
        security: Curve | None = None,
        insecure: bool = False,
    ) -> None:
        self._owner = _NOBODY
        _check_options(hwm, max_message_bytes, linger, timeout)
        address = addresses.parse(addr, create=create)
        self._pid = os.getpid()
        self._thread = threading.current_thread().name
        self._timeout = timeout
        self.linger_s = linger
        self._max_message_bytes = max_message_bytes
        self._binds = create
        self._inside = address.transport == "inproc"
        self._path = address.path if create else None
        self._poll = select.poll()
        socket = context.context().socket(self._socket_type)
        try:
            socket.set_hwm(hwm)
            socket.set(zmq.MAXMSGSIZE, max_message_bytes)
            socket.set(zmq.RECONNECT_IVL, _RECONNECT_MS)
            socket.set(zmq.RECONNECT_IVL_MAX, _RECONNECT_MAX_MS)
            if address.transport == "tcp":
                _configure_tcp(socket, address)
            if security is not None:
                security.apply(socket, create=create)
            self._configure(socket)
            if create:
                self.addr = binding.bind(
                    socket, address, secured=security is not None, insecure=insecure
                )
            else:
                binding.connect(socket, address)
                self.addr = addr
        except BaseException:
            self._before_closing(0.0)
            self._shut(socket, 0.0)
            raise
        self._file = None if self._path is None else binding.file_id(self._path)
        self._frees_late = create and address.transport == "tcp"
        self._socket = socket
        # The call under pyzmq's Python layer, which would double its cost.
        self._raw: Any = super(zmq.Socket, socket)
        self._signal = int(socket.get(zmq.FD))
        self._poll.register(self._signal, select.POLLIN)
        self._messages = 0
        self._bytes = 0
        self._decode_errors = 0
        self._owner = get_ident()
        context.settle(self)

    def _configure(self, socket: zmq.Socket[bytes]) -> None:
        """Set what the kind of socket needs, before it binds or connects."""

    def __repr__(self) -> str:
        state = "stopped" if self._socket is None else "open"
        return f"<{type(self).__name__} {self.addr} {state}>"

    # Life

    def stop(self, linger: float | None = None) -> None:
        """Close the socket; a second time does nothing.

        A sending end waits up to `linger` seconds until what was put has arrived; what has not may
        be dropped then, and a warning is logged. What was received and not taken is
        dropped. A bound address is free, and its file gone, when this returns.

        Args:
            linger: seconds to wait, instead of those that the queue was made with; 0 drops.

        Raises:
            ValueError: linger is out of range.
            WrongThread: another thread made the queue.
            WrongProcess: a parent process made it.
        """
        if self._socket is None:
            return
        self._check_owner()
        if linger is not None:
            _check_linger(linger)
        self._close(monotonic() + (self.linger_s if linger is None else linger))

    def _close(self, deadline: float) -> None:
        """Close the socket; messages on their way out get until the deadline."""
        socket, self._socket = self._socket, None
        self._owner = _NOBODY
        context.leave(self)
        if socket is None or socket.closed:
            return
        try:
            self._before_closing(deadline)
        finally:
            # Whatever is raised meanwhile: an open socket would keep the process from ending.
            if self._path is not None:
                binding.remove_file(self._path, self._file)
            if self._frees_late:
                self._shut_and_wait(socket, deadline)
            else:
                self._shut(socket, deadline)

    def _before_closing(self, deadline: float) -> None:
        """Do what has to be done while the socket is still open, by the deadline."""

    def _shut_and_wait(self, socket: zmq.Socket[bytes], deadline: float) -> None:
        """Close a socket and wait until its port is free, which libzmq does in the background.

        To unbind first would be simpler, and would drop the messages on their way out.
        """
        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.suppress(zmq.ContextTerminated))
            stack.callback(self._shut, socket, deadline)
            monitor = Monitor(socket, zmq.EVENT_CLOSED)
            stack.callback(monitor.close)
            self._shut(socket, deadline)
            monitor.wait(_CLOSING_PATIENCE_MS)

    def _shut(self, socket: zmq.Socket[bytes], deadline: float) -> None:
        # A receiving end has subscriptions to send at most. To linger for them would connect to
        # whoever binds the address next.
        socket.close(linger=0)

    def __enter__(self: E) -> E:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def __del__(self) -> None:
        if self._socket is not None and self._pid == os.getpid():
            text = f"{self!r} was not stopped"
            self.close_at_exit()
            warnings.warn(text, ResourceWarning, stacklevel=2, source=self)

    def owner(self) -> int:
        """Return the identifier of the thread that uses the endpoint."""
        return self._owner

    def close_at_exit(self, deadline: float | None = None) -> None:
        """Close the socket from the thread that exits, or that drops the queue."""
        own = monotonic() + self.linger_s
        self._close(own if deadline is None else min(own, deadline))

    def disown(self) -> None:
        """Refuse all use, in a forked child."""
        self._owner = _NOBODY

    def remove_socket_file(self) -> None:
        """Remove the file of a bound ipc address; from any thread, before the process is ended."""
        if self._path is not None and self._socket is not None:
            binding.remove_file(self._path, self._file)

    # Use

    def _check_owner(self) -> None:
        if get_ident() != self._owner:
            self._refuse()

    def _refuse(self) -> NoReturn:
        """Say why the caller must not use the endpoint."""
        if self._socket is None:
            raise QueueClosed(f"{self.addr}: the queue is stopped; make a new one")
        if self._pid != os.getpid():
            raise WrongProcess(
                f"{self.addr}: the queue was made in process {self._pid}, before this one was "
                "forked from it; make a new one here"
            )
        raise WrongThread(
            f"{self.addr}: the queue was made in thread {self._thread!r} and is used in "
            f"{threading.current_thread().name!r}; make one in each thread, ZeroMQ sockets cannot "
            "be shared"
        )

    def _closed_by_exit(self) -> QueueClosed:
        return QueueClosed(f"{self.addr}: the process is exiting")

    def _events(self) -> int:
        """Look at the socket: everything that was signalled up to now is taken in."""
        try:
            return int(self._raw.get(zmq.EVENTS))
        except zmq.ContextTerminated:
            raise self._closed_by_exit() from None

    def _seconds(self, timeout: Timeout) -> float | None:
        return self._timeout if timeout is DEFAULT else timeout

    def _deadline(self, timeout: Timeout) -> float | None:
        seconds = self._seconds(timeout)
        return None if seconds is None else monotonic() + seconds

    def _wait(self, deadline: float | None) -> bool:
        """Wait until anything happens to the socket; False where the deadline has passed."""
        if deadline is None:
            self._poll.poll()
            return True
        left = deadline - monotonic()
        if left <= 0:
            return False
        self._poll.poll(math.ceil(min(left, _LONGEST_POLL_S) * 1000))
        return True

    @property
    def stats(self) -> QueueStats:
        """What has passed so far.

        Raises:
            QueueClosed, WrongThread, WrongProcess: as with every use.
        """
        self._check_owner()
        return QueueStats(*self._counts(), self._decode_errors, self._waiting())

    def _counts(self) -> tuple[int, int]:
        return self._messages, self._bytes

    def _waiting(self) -> int:
        return 0


def time_left(deadline: float | None) -> float | None:
    """Return the seconds until a deadline; None for ever."""
    return None if deadline is None else max(0.0, deadline - monotonic())


def _check_options(
    hwm: int, max_message_bytes: int, linger: float, timeout: float | None
) -> None:
    if hwm < 1:
        raise ValueError(f"hwm: expected 1 or more messages, got {hwm}")
    if max_message_bytes < 1:
        raise ValueError(
            f"max_message_bytes: expected 1 or more, got {max_message_bytes}"
        )
    _check_linger(linger)
    if timeout is not None and not timeout >= 0:
        raise ValueError(f"timeout: expected 0 or more seconds or None, got {timeout}")


def _check_linger(linger: float) -> None:
    if not 0 <= linger < 1e6:
        raise ValueError(
            f"linger: expected 0 or more seconds, and an end, got {linger}"
        )


def _configure_tcp(socket: zmq.Socket[bytes], address: addresses.Address) -> None:
    """Notice peers that vanish without a word, such as a machine that lost its power.

    The system's keepalive does that, not ZeroMQ's heartbeats: a heartbeat waits behind the messages
    of a receiver that is slow, and would drop it, and them.
    """
    socket.set(zmq.TCP_KEEPALIVE, 1)
    socket.set(zmq.TCP_KEEPALIVE_IDLE, _KEEPALIVE_IDLE_S)
    socket.set(zmq.TCP_KEEPALIVE_INTVL, _KEEPALIVE_INTERVAL_S)
    socket.set(zmq.TCP_KEEPALIVE_CNT, _KEEPALIVE_PROBES)
    if ":" in address.host:
        socket.set(zmq.IPV6, 1)

"""Endpoints: a ZeroMQ socket with an owner, a bounded life and waits that end.

An endpoint belongs to the thread that made it: ZeroMQ sockets are not safe to share. One comparison
per call, of the caller's thread with the owner, finds all three ways of using it wrongly: a second
thread, a forked child, and use after `stop` (a stopped or disowned endpoint is owned by nobody).

Whatever a queue waits for is an attempt: a call that does all of it now, or raises zmq.Again and has
done nothing. `_until` repeats it; a thread and an event loop differ in how they wait in between.

Waits are on the descriptor that ZeroMQ signals when anything has happened to the socket. It is
edge-triggered: it tells of events since the socket was last looked at, so a wait always follows a
look that found nothing.
"""

from __future__ import annotations

import enum
import math
import os
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from threading import get_ident
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias, TypedDict, TypeVar

import zmq
from msgen.runtime.errors import QueueClosed, WrongProcess, WrongThread
from msgen.runtime.sockets import addresses, binding, context
from msgen.runtime.sockets.curve import Curve

if TYPE_CHECKING:
    from typing_extensions import Self

HIGH_WATER_MARK = 1000
"""Messages that each end holds before the sender has to wait; ZeroMQ's own default."""
MAX_MESSAGE_BYTES = 1 << 30
"""Bytes of the largest message that passes: above any batch of prompts, below a GPU host's memory."""
LINGER_S = 1.0
"""Seconds that messages on their way out get after `stop`, and at the process's exit."""

_NOBODY = -1

T = TypeVar("T")


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


class Endpoint(context.Resource):
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

    _socket_type: int
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
        _check_options(hwm, max_message_bytes, linger, timeout)
        self.addr = addr
        self._address = addresses.parse(addr, create=create)
        self._binds = create
        self._pid = os.getpid()
        self._thread = threading.current_thread().name
        self._timeout = timeout
        self.linger_s = linger
        self._max_message_bytes = max_message_bytes
        self._messages = self._bytes = self._decode_errors = 0
        socket = context.context().socket(self._socket_type)
        try:
            socket.set_hwm(hwm)
            socket.set(zmq.MAXMSGSIZE, max_message_bytes)
            secured = security is not None
            if security is not None:
                security.apply(socket, create=create)
            self._configure(socket)
            self._file: binding.SocketFile | None = None
            if create:
                self.addr, self._file = binding.bind(
                    socket, self._address, secured=secured, insecure=insecure
                )
            else:
                binding.connect(socket, self._address)
        except BaseException:
            self._before_closing(0.0)
            socket.close(linger=0)
            raise
        self._socket = socket
        # The call under pyzmq's Python layer, which would double its cost.
        self._raw: Any = super(zmq.Socket, socket)
        self._owner = get_ident()
        context.register(self)

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
        context.unregister(self)
        # A collector that frees the endpoint and its socket together may have closed it already.
        if socket is None or socket.closed:
            return
        try:
            self._before_closing(deadline)
        finally:
            # Whatever is raised meanwhile: an open socket would keep the process from ending.
            if self._file is not None:
                self._file.remove()
            if self._binds and self._address.transport == "tcp":
                binding.close_and_free(socket, self._linger_ms(deadline))
            else:
                socket.close(self._linger_ms(deadline))

    def _before_closing(self, deadline: float) -> None:
        """Do what has to be done while the socket is still open, by the deadline."""

    def _linger_ms(self, deadline: float) -> int:
        # A receiving end has subscriptions to send at most. To linger for them would connect to
        # whoever binds the address next.
        return 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def __del__(self) -> None:
        if self._socket is not None and self._pid == os.getpid():
            text = f"{self!r} was not stopped"
            self.close_at_exit()
            warnings.warn(text, ResourceWarning, stacklevel=2, source=self)

    def owner(self) -> int:
        """Return the identifier of the thread that uses the endpoint."""
        return self._owner

    def close_at_exit(self, deadline: float = math.inf) -> None:
        """Close the socket from the thread that exits, or that drops the queue."""
        self._close(min(monotonic() + self.linger_s, deadline))

    def disown(self) -> None:
        """Refuse all use, in a forked child."""
        self._owner = _NOBODY

    def remove_socket_file(self) -> None:
        """Remove the file of a bound ipc address; from any thread, before the process is ended."""
        if self._file is not None and self._socket is not None:
            self._file.remove()

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
        """Look at the socket: its descriptor tells of what comes from now on."""
        try:
            return int(self._raw.get(zmq.EVENTS))
        except zmq.ContextTerminated:
            raise self._closed_by_exit() from None

    def _seconds(self, timeout: Timeout) -> float | None:
        return self._timeout if timeout is DEFAULT else timeout

    def _deadline(self, timeout: Timeout) -> float:
        seconds = self._seconds(timeout)
        return math.inf if seconds is None else monotonic() + seconds

    async def _until(
        self,
        attempt: Callable[[], T],
        timeout: Timeout,
        unsignalled: Callable[[], bool] | None = None,
    ) -> T:
        """Attempt until it succeeds.

        Args:
            attempt: does what is waited for, or raises zmq.Again.
            timeout: seconds; None waits for ever.
            unsignalled: says whether what is waited for may come without a signal now, so that it
                has to be attempted again and again.

        Raises:
            zmq.Again: no attempt succeeded in time.
            zmq.ContextTerminated: the process is exiting.
        """
        raise NotImplementedError

    async def _pause(self, seconds: float) -> None:
        """Pause for a while."""
        raise NotImplementedError

    @property
    def stats(self) -> QueueStats:
        """What has passed so far.

        Raises:
            QueueClosed, WrongThread, WrongProcess: as with every use.
        """
        self._check_owner()
        return QueueStats(
            self._messages, self._bytes, self._decode_errors, self._waiting()
        )

    def _waiting(self) -> int:
        return 0


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

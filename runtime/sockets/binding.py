"""Binding, connecting and closing: who may have an address, and what is left of those who had it.

This takes more care than ZeroMQ does: libzmq removes whatever file lies at an ipc path, a live
socket too, so that a second binder takes the first one's peers away in silence. Here the path is
probed first, under a lock on its folder: what answers is in use, and what does not was left by a
killed process.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zmq
from msgen.runtime.errors import AddressError, AddressInUse, InsecureAddress

from .addresses import Address, runtime_folder
from .monitor import Monitor

# A peer that comes back is found within half a second, as docs/runtime.md says; one that is only
# started a little later, at once.
_RECONNECT_MS = 10
_RECONNECT_MAX_MS = 500
# A peer whose machine vanished is noticed in 10 + 4 * 5 seconds, which spares one that is only slow.
_KEEPALIVE_IDLE_S = 10
_KEEPALIVE_INTERVAL_S = 5
_KEEPALIVE_PROBES = 4
_CLOSING_MS = 5000
"""A bound only: the I/O thread closes a port in microseconds, unless the machine is overloaded."""


@dataclass(frozen=True)
class SocketFile:
    """The file of a bound ipc socket; its inode tells it from a later one of the same name."""

    path: Path
    inode: tuple[int, int] | None

    def remove(self) -> None:
        """Remove it, which libzmq does not; what somebody else has put in its place stays."""
        with contextlib.suppress(AddressError, OSError), locked(self.path.parent):
            if _inode(self.path) == self.inode:
                self.path.unlink()


def bind(
    zmq_socket: zmq.Socket[Any], address: Address, *, secured: bool, insecure: bool
) -> tuple[str, SocketFile | None]:
    """Bind a socket where nobody else is bound.

    A socket file that a killed process left behind is replaced.

    Args:
        zmq_socket: what to bind.
        address: where to.
        secured: whether the socket has CURVE keys.
        insecure: whether an address that other machines reach may be bound without.

    Returns:
        The address to connect to, in which a free port or path that was asked for is filled in;
        and the socket's file, if it has one.

    Raises:
        AddressInUse: another socket is bound there.
        InsecureAddress: other machines could connect, unauthenticated and in the clear.
        AddressError: the address cannot be bound.
    """
    if not (address.is_loopback or secured or insecure):
        raise InsecureAddress(
            f"address {address.text!r}: other machines could connect, and nothing is encrypted or "
            "authenticated; give security=Curve.server(...), bind to 127.0.0.1, or say "
            "insecure=True"
        )
    _configure_tcp(zmq_socket, address)
    path = address.path
    with contextlib.nullcontext() if path is None else locked(path.parent):
        if path is not None:
            _make_way(address.text, path)
        try:
            zmq_socket.bind(address.text)
        except zmq.ZMQError as error:
            if error.errno == errno.EADDRINUSE:
                raise AddressInUse(
                    f"address {address.text!r}: in use by another socket; stop that one first, or "
                    "use another address"
                ) from None
            raise AddressError(
                f"address {address.text!r}: cannot be bound: {error.strerror}"
            ) from None
        file = None if path is None else SocketFile(path, _inode(path))
    return zmq_socket.getsockopt_string(zmq.LAST_ENDPOINT), file


def connect(zmq_socket: zmq.Socket[Any], address: Address) -> None:
    """Connect a socket; who binds may come later, or again.

    Raises:
        AddressError: the system refuses the address.
    """
    _configure_tcp(zmq_socket, address)
    zmq_socket.set(zmq.RECONNECT_IVL, _RECONNECT_MS)
    zmq_socket.set(zmq.RECONNECT_IVL_MAX, _RECONNECT_MAX_MS)
    try:
        zmq_socket.connect(address.text)
    except zmq.ZMQError as error:
        raise AddressError(
            f"address {address.text!r}: cannot be connected to: {error.strerror}"
        ) from None


def _configure_tcp(zmq_socket: zmq.Socket[Any], address: Address) -> None:
    """Notice peers that vanish without a word, such as a machine that lost its power.

    The system's keepalive does that, not ZeroMQ's heartbeats: a heartbeat waits behind the messages
    of a receiver that is slow, and would drop it, and them.
    """
    if address.transport != "tcp":
        return
    zmq_socket.set(zmq.TCP_KEEPALIVE, 1)
    zmq_socket.set(zmq.TCP_KEEPALIVE_IDLE, _KEEPALIVE_IDLE_S)
    zmq_socket.set(zmq.TCP_KEEPALIVE_INTVL, _KEEPALIVE_INTERVAL_S)
    zmq_socket.set(zmq.TCP_KEEPALIVE_CNT, _KEEPALIVE_PROBES)
    if ":" in address.host:
        zmq_socket.set(zmq.IPV6, 1)


def close_and_free(zmq_socket: zmq.Socket[Any], linger_ms: int) -> None:
    """Close a bound socket and wait until its port is free, which libzmq does in the background.

    To unbind first would be simpler, and would drop the messages on their way out.
    """
    try:
        with (
            contextlib.suppress(zmq.ContextTerminated),
            contextlib.closing(Monitor(zmq_socket, zmq.EVENT_CLOSED)) as monitor,
        ):
            zmq_socket.close(linger_ms)
            monitor.wait(_CLOSING_MS)
    finally:
        zmq_socket.close(linger_ms)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes from binding and unbinding in a folder.

    Raises:
        AddressError: there is no such folder.
    """
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise AddressError(
            f"folder {str(folder)!r}, where the socket file should be: {error.strerror}"
        ) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        # A child that was forked meanwhile has the descriptor too; closing this one is not enough.
        fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def remove_stale_file(path: Path) -> None:
    """Remove the socket file of a process that was killed; one that somebody listens on stays."""
    with contextlib.suppress(AddressError, OSError), locked(path.parent):
        _remove_if_stale(path)


def _remove_if_stale(path: Path) -> None:
    # One odd file must not keep everybody from binding.
    with contextlib.suppress(AddressError, OSError):
        if path.is_socket() and _listener(path) is None:
            path.unlink()


def _make_way(text: str, path: Path) -> None:
    """Make sure that binding to a path takes nothing from anybody."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise AddressError(
                f"address {text!r}: the file there is not a socket; move it, or use another path"
            )
        listener = _listener(path)
        if listener is not None:
            by = f"process {listener}" if listener else "another process"
            raise AddressInUse(
                f"address {text!r}: in use by {by}; stop that one first, or use another address",
                listener or None,
            )
    if path.parent == runtime_folder():
        for each in path.parent.iterdir():
            _remove_if_stale(each)


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _listener(path: Path) -> int | None:
    """Return who listens at a socket's path: a process id, 0 if unknown, None for nobody."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return None
        except BlockingIOError:
            return 0  # It listens; its backlog is full.
        except OSError as error:
            raise AddressError(f"{path}: {error.strerror}") from None
        if not hasattr(socket, "SO_PEERCRED"):
            return 0  # macOS does not tell.
        credentials = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid = int(struct.unpack("3i", credentials)[0])
    if pid <= 0:
        return 0  # It lives where this process cannot see it, such as in a container.
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        # A forked child still holds what its dead parent listened on; nobody answers there.
        return None
    except PermissionError:
        pass
    return pid

"""Addresses: where the two ends of a queue meet, and who may bind there.

`ipc_address` gives both ends of a queue on one machine the same address. Binding takes more care
than ZeroMQ does: libzmq removes whatever file lies at an ipc path, a live socket too, so that a
second binder takes the first one's peers away in silence. Here the path is probed first, under a
lock on its folder: what answers is in use, and what does not was left by a killed process.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import ipaddress
import os
import re
import socket
import stat
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zmq

from .errors import AddressError, AddressInUse, InsecureAddress

IPC_PATH_LIMIT = int(zmq.IPC_PATH_MAX_LEN) or (107 if sys.platform == "linux" else 103)
"""Bytes that the path of a Unix socket may have: 107 on Linux, 103 on macOS."""

FOLDER_VARIABLE = "MSGEN_RUNTIME_DIR"
"""Environment variable with another folder for socket files than `/tmp/msgen-<user id>`."""

_READABLE = 24
"""Characters of a group's name that stand in its address."""


@dataclass(frozen=True)
class Address:
    """An address, taken apart.

    Attributes:
        text: the whole, such as `tcp://127.0.0.1:5555`.
        transport: `ipc`, `tcp` or `inproc`.
        where: what follows `://`.
    """

    text: str
    transport: str
    where: str

    @property
    def path(self) -> Path | None:
        """The socket's file; None where the address has none, or none yet."""
        if self.transport != "ipc" or self.where == "*" or self.where[0] == "@":
            return None
        return Path(self.where)

    @property
    def host(self) -> str:
        """The host of a tcp address, without the brackets of IPv6."""
        return self.where.rpartition(":")[0].strip("[]")

    @property
    def is_loopback(self) -> bool:
        """Whether only processes of this machine can reach what is bound here."""
        if self.transport != "tcp":
            return True
        if self.host in ("localhost", "lo", "lo0"):
            return True
        try:
            return ipaddress.ip_address(self.host.partition("%")[0]).is_loopback
        except ValueError:
            return False


def parse(text: str, *, create: bool) -> Address:
    """Take an address apart and check it.

    Args:
        text: such as `ipc:///run/engine/backend`, `tcp://127.0.0.1:5555` or `tcp://127.0.0.1:0`.
        create: whether it is to be bound; else it is connected to.

    Raises:
        AddressError: it is malformed, its path is too long, or it names no port to connect to.
    """
    transport, found, where = text.partition("://")
    if not found or not where or transport not in ("ipc", "tcp", "inproc"):
        raise AddressError(
            f"address {text!r}: expected ipc://PATH, tcp://HOST:PORT or inproc://NAME"
        )
    if "\0" in text:
        raise AddressError(f"address {text!r}: holds a NUL character")
    address = Address(text, transport, where)
    if transport == "ipc":
        _check_ipc(address, create)
    elif transport == "tcp":
        _check_tcp(address, create)
    return address


def _check_ipc(address: Address, create: bool) -> None:
    if address.where == "*" and not create:
        raise AddressError(
            f"address {address.text!r}: connect to the path that the binding end's `addr` says"
        )
    size = len(os.fsencode(address.where))
    if size > IPC_PATH_LIMIT:
        raise AddressError(
            f"address {address.text!r}: the path has {size} bytes, the system's limit for "
            f"sockets is {IPC_PATH_LIMIT}; use a shorter folder, or "
            "msgen.runtime.addresses.ipc_address"
        )


def _check_tcp(address: Address, create: bool) -> None:
    port = address.where.rpartition(":")[2]
    digits = port.isascii() and port.isdecimal()
    if not address.host or not (digits or port == "*") or len(port) > 5:
        raise AddressError(
            f"address {address.text!r}: expected tcp://HOST:PORT, such as tcp://127.0.0.1:5555"
        )
    if digits and int(port) > 65_535:
        raise AddressError(f"address {address.text!r}: port {port} is above 65535")
    if not create and (port == "*" or int(port) == 0):
        raise AddressError(
            f"address {address.text!r}: port {port} stands for any free one, which only the "
            "binding end may ask for; connect to what its `addr` says"
        )


def bind(
    zmq_socket: zmq.Socket[Any], address: Address, *, secured: bool, insecure: bool
) -> str:
    """Bind a socket where nobody else is bound.

    A socket file that a killed process left behind is replaced.

    Args:
        zmq_socket: what to bind.
        address: where to.
        secured: whether the socket has CURVE keys.
        insecure: whether an address that other machines reach may be bound without.

    Returns:
        The address to connect to: a free port or path that was asked for is filled in.

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
    return zmq_socket.getsockopt_string(zmq.LAST_ENDPOINT)


def connect(zmq_socket: zmq.Socket[Any], address: Address) -> None:
    """Connect a socket; who binds may come later.

    Raises:
        AddressError: the system refuses the address.
    """
    try:
        zmq_socket.connect(address.text)
    except zmq.ZMQError as error:
        raise AddressError(
            f"address {address.text!r}: cannot be connected to: {error.strerror}"
        ) from None


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
        os.close(handle)


def file_id(path: Path) -> tuple[int, int] | None:
    """Return what tells a socket's file from one that takes its place."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def remove_file(path: Path, file: tuple[int, int] | None) -> None:
    """Remove the file of a socket that is about to close, which libzmq leaves behind.

    What somebody else has put in its place stays.
    """
    with contextlib.suppress(AddressError, OSError), locked(path.parent):
        if file_id(path) == file:
            path.unlink()


def _make_way(text: str, path: Path) -> None:
    """Make sure that binding to a path takes nothing from anybody."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        pass
    else:
        if not stat.S_ISSOCK(mode):
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
    if path.parent == _folder_path():
        _remove_stale(path.parent)


def _remove_stale(folder: Path) -> None:
    """Remove the socket files of killed processes from msgen's own folder."""
    for path in folder.iterdir():
        if path.is_socket() and _listener(path) is None:
            path.unlink(missing_ok=True)


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
            return 0
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


def ipc_address(group: str, run: str) -> str:
    """Return the address of a group's queue in one run of an engine.

    Both ends call this with the same two strings and meet. The address is short enough for every
    system, whatever the strings. Its file lies in `/tmp/msgen-<user id>`, or in the folder that
    MSGEN_RUNTIME_DIR names, which only the user can enter; it is made if need be.

    Args:
        group: the group's name, or any other name of a queue.
        run: what the processes of one engine have in common and others do not, such as an id that
            the launcher makes and hands down.

    Raises:
        AddressError: the folder belongs to someone else, is open to others, or has too long a
            path.
    """
    folder = _own_folder()
    digest = hashlib.sha256(f"{len(group)}:{group}{run}".encode(errors="surrogatepass"))
    readable = re.sub(r"[^A-Za-z0-9_.-]", "_", group[:_READABLE])
    address = f"ipc://{folder}/{readable}-{digest.hexdigest()[:16]}"
    return parse(address, create=True).text


def _folder_path() -> Path:
    return Path(os.environ.get(FOLDER_VARIABLE) or f"/tmp/msgen-{os.getuid()}")


def _own_folder() -> Path:
    """Return the folder of socket files, made if need be, closed to other users."""
    folder = _folder_path()
    try:
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = folder.lstat()
    except OSError as error:
        raise AddressError(
            f"folder {str(folder)!r} for socket files: {error.strerror}; set {FOLDER_VARIABLE} to "
            "another one"
        ) from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise AddressError(
            f"folder {str(folder)!r} for socket files is not a folder of this user; remove it, or "
            f"set {FOLDER_VARIABLE} to another one"
        )
    if found.st_mode & 0o077:
        raise AddressError(
            f"folder {str(folder)!r} for socket files has mode {found.st_mode & 0o777:04o}, so "
            f"that other users can enter it; run: chmod 0700 {folder}"
        )
    return folder

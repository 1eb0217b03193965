"""Addresses: where the two ends of a queue meet.

`ipc_address` gives both ends of a queue on one machine the same address.
"""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

import zmq
from msgen.runtime.errors import AddressError

IPC_PATH_LIMIT = int(zmq.IPC_PATH_MAX_LEN)
"""Bytes that the path of a Unix socket may have: 107 on Linux, 103 on macOS."""

FOLDER_VARIABLE = "MSGEN_RUNTIME_DIR"
"""Environment variable with another folder for socket files than `/tmp/msgen-<user id>`."""

_READABLE = 24
"""Characters of a group's name that stand in its address: enough to tell files apart by eye."""


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
        """The socket's file; None where the address has none."""
        if self.transport != "ipc" or self.where[0] == "@":
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
        _check_ipc(address)
    elif transport == "tcp":
        _check_tcp(address, create)
    return address


def _check_ipc(address: Address) -> None:
    if address.where == "*":
        raise AddressError(
            f"address {address.text!r}: expected a path; msgen.runtime.sockets.ipc_address gives "
            "both ends the same one"
        )
    size = len(os.fsencode(address.where))
    if size > IPC_PATH_LIMIT:
        raise AddressError(
            f"address {address.text!r}: the path has {size} bytes, the system's limit for "
            f"sockets is {IPC_PATH_LIMIT}; use a shorter folder, or "
            "msgen.runtime.sockets.ipc_address"
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


def runtime_folder() -> Path:
    """Return the folder of msgen's own socket files, which may not be there yet."""
    return Path(os.environ.get(FOLDER_VARIABLE) or f"/tmp/msgen-{os.getuid()}")


def _own_folder() -> Path:
    """Return the folder of socket files, made if need be, closed to other users."""
    folder = runtime_folder()
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

"""CURVE: encryption and authentication of tcp connections, by ZeroMQ itself.

Each end has a pair of keys. The connecting end names the binding end's public key, so it knows
whom it talks to. The binding end lists the public keys that it lets in; without a list it lets in
whoever knows its own. Key files have the format of pyzmq's certificates: `msgen keys` makes them.

Source: CurveZMQ, https://rfc.zeromq.org/spec/26/
"""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import zmq
import zmq.auth
from msgen.runtime.errors import SecurityError
from zmq.auth.thread import ThreadAuthenticator
from zmq.utils import z85

from . import context

Key: TypeAlias = str | bytes | os.PathLike[str]
"""A key of 40 characters (Z85), or the path of a file that holds it."""

_KEY_LENGTH = 40
"""Characters of Z85 for the 32 bytes of a Curve25519 key."""


@dataclass(frozen=True)
class Curve:
    """The keys of one end of a connection; `Curve.server` and `Curve.client` make them.

    Attributes:
        public: this end's public key, 40 bytes of Z85.
        secret: its secret key.
        peer: for the connecting end, the public key of the binding end.
        clients: for the binding end, the public keys that may connect; None for all.
    """

    public: bytes
    secret: bytes = field(repr=False)
    peer: bytes | None = None
    clients: frozenset[bytes] | None = None

    @classmethod
    def server(cls, keys: Key, *, clients: Iterable[Key] | None = None) -> Curve:
        """Return the keys of the end that binds.

        Args:
            keys: its secret key, or the file of it (`NAME.key_secret`).
            clients: the public keys that may connect, or their files (`NAME.key`); None lets in
                every peer that knows this end's public key, so that this key is the secret.

        Raises:
            SecurityError: a key is malformed, or its file cannot be read.
        """
        secret = _secret(keys)
        allowed = (
            None if clients is None else frozenset(_public(key) for key in clients)
        )
        return cls(zmq.curve_public(secret), secret, clients=allowed)

    @classmethod
    def client(cls, server: Key, keys: Key | None = None) -> Curve:
        """Return the keys of an end that connects.

        Args:
            server: the public key of the binding end, or its file (`NAME.key`).
            keys: this end's secret key, or its file (`NAME.key_secret`); None makes a pair for
                this one connection, which a binding end with a list of clients refuses.

        Raises:
            SecurityError: a key is malformed, or its file cannot be read.
        """
        secret = zmq.curve_keypair()[1] if keys is None else _secret(keys)
        return cls(zmq.curve_public(secret), secret, peer=_public(server))

    def apply(self, socket: zmq.Socket[bytes], *, create: bool) -> None:
        """Set the keys of a socket, before it binds or connects.

        Raises:
            SecurityError: these are the keys of the other end.
        """
        if create != (self.peer is None):
            wanted, given = ("server", "client") if create else ("client", "server")
            end = "binds" if create else "connects"
            raise SecurityError(
                f"security=Curve.{given}(...) is given to the end that {end}; it needs "
                f"Curve.{wanted}(...)"
            )
        socket.curve_publickey = self.public
        socket.curve_secretkey = self.secret
        if self.peer is not None:
            socket.curve_serverkey = self.peer
            return
        socket.curve_server = True
        if self.clients is not None:
            socket.zap_domain = _zap_domain(self.clients)


class _ZapHandler(context.Resource):
    """Answers ZeroMQ, for each connection to a socket with a list of clients, whether to let it in.

    A context has one handler, which is asked with the socket's domain; each list is a domain.

    Source: ZAP, https://rfc.zeromq.org/spec/27/
    """

    def __init__(self) -> None:
        self._lists: dict[str, frozenset[bytes]] = {}
        self._authenticator = ThreadAuthenticator(context.context())
        self._authenticator.start()
        # Sockets without a list are asked about, too; they have no domain, which reads as "*".
        self._authenticator.configure_curve_callback("*", self)

    def domain_of(self, clients: frozenset[bytes]) -> bytes:
        """Return the domain of sockets that let these clients in."""
        for domain, known in self._lists.items():
            if known == clients:
                return domain.encode()
        domain = f"msgen-{len(self._lists)}"
        self._lists[domain] = clients
        self._authenticator.configure_curve_callback(domain, self)
        return domain.encode()

    def callback(self, domain: str, key: bytes) -> bool:
        """Say whether a public key may enter a domain; the authenticator calls it."""
        return domain == "*" or key in self._lists[domain]

    def close_at_exit(self, deadline: float) -> None:
        global _zap_handler
        _zap_handler = None
        self._authenticator.stop()

    def disown(self) -> None:
        global _zap_handler
        _zap_handler = None
        # Its thread and its sockets are the parent's.
        self._authenticator.thread = self._authenticator.pipe = None  # type: ignore[assignment]


_zap_handler: _ZapHandler | None = None


def _zap_domain(clients: frozenset[bytes]) -> bytes:
    global _zap_handler
    with context.lock:
        if _zap_handler is None:
            _zap_handler = _ZapHandler()
            context.register(_zap_handler)
        return _zap_handler.domain_of(clients)


def make_keys(folder: Path, name: str) -> tuple[Path, Path]:
    """Make a pair of keys, in files of which only the user can read the secret one.

    Args:
        folder: where to; it is made if need be.
        name: of the files, without their endings.

    Returns:
        The public file, `NAME.key`, and the secret one, `NAME.key_secret`, of mode 0600.

    Raises:
        SecurityError: one of the files exists already, or cannot be written.
    """
    if not name or Path(name).name != name:
        raise SecurityError(f"{name!r}: expected a file's name, without a folder")
    made: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as private:
            for source in zmq.auth.create_certificates(private, name):
                Path(source).chmod(0o600 if source.endswith("_secret") else 0o644)
                target = folder / Path(source).name
                os.link(source, target)  # Unlike a rename, it replaces nothing.
                made.append(target)
    except OSError as error:
        for path in made:
            path.unlink()
        if isinstance(error, FileExistsError):
            raise SecurityError(
                f"{error.filename2 or folder}: exists already; keys are never replaced: choose "
                "another name, or remove the old ones"
            ) from None
        raise SecurityError(f"{folder}: {error.strerror}") from None
    public, secret = made
    return public, secret


def _public(key: Key) -> bytes:
    return _literal(key) or _load(key)[0]


def _secret(key: Key) -> bytes:
    secret = _literal(key) or _load(key)[1]
    if secret is None:
        raise SecurityError(
            f"{os.fspath(key)!r}: holds a public key only; the secret one is in the file that "
            "ends in .key_secret"
        )
    return secret


def _literal(key: Key) -> bytes | None:
    """Return the key itself where it is one and not a path."""
    if isinstance(key, str) and (key.endswith(".key") or Path(key).is_file()):
        return None  # Slashes and dots may stand in a key, too.
    data = key.encode() if isinstance(key, str) else key
    if not isinstance(data, bytes) or len(data) != _KEY_LENGTH:
        return None
    try:
        return data if z85.encode(z85.decode(data)) == data else None
    except (KeyError, ValueError, struct.error):
        return None


def _load(key: Key) -> tuple[bytes, bytes | None]:
    path = os.fsdecode(key)
    try:
        keys = zmq.auth.load_certificate(path)
    except (OSError, ValueError) as error:
        raise SecurityError(
            f"{path!r}: neither a key of {_KEY_LENGTH} characters nor a readable key file: {error}"
        ) from None
    for each in keys:
        if each is not None and _literal(each) is None:
            raise SecurityError(f"{path!r}: holds a malformed key")
    return keys

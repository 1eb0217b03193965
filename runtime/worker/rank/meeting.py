"""How ranks meet: on one machine by files, on several by torch's store.

On several machines the broadcast goes over tcp with CURVE. Every rank makes keys of its own; the
store carries the public ones, and rank 0's address. So rank 0 lets exactly these ranks in, and they
know that it is rank 0. Who can write to the store could pose as a rank: its network is trusted, as
torch itself trusts it.
"""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

import zmq
from msgen.runtime.codec import wire
from msgen.runtime.sockets.curve import Curve

_ADDRESS = "msgen/steps"


class Meeting(Protocol):
    """Where ranks find each other."""

    def bind(self) -> tuple[str, Curve | None]:
        """Return where rank 0 binds the broadcast, and its keys."""

    def bound(self, addr: str) -> None:
        """Tell the others where it has."""

    def connect(self) -> tuple[str, Curve | None]:
        """Return where another rank connects to, and its keys."""

    def store(self) -> Any:
        """Return the store by which torch's process group meets."""


@dataclass(eq=False)
class LocalMeeting:
    """Ranks of one machine.

    Args:
        steps: the address of the broadcast.
        path: of the store's file.
        world_size: how many ranks there are.
    """

    steps: str
    path: str
    world_size: int

    def bind(self) -> tuple[str, Curve | None]:
        return self.steps, None

    def bound(self, addr: str) -> None:
        pass

    def connect(self) -> tuple[str, Curve | None]:
        return self.steps, None

    def store(self) -> Any:
        import torch.distributed as dist

        # Else gloo listens where the machine's name leads to, for other machines, too.
        os.environ.setdefault(
            "GLOO_SOCKET_IFNAME", "lo" if sys.platform == "linux" else "lo0"
        )
        return dist.FileStore(self.path, self.world_size)  # type: ignore[attr-defined]


class StoreMeeting:
    """Ranks of several machines.

    Args:
        store: torch's.
        rank: of this process.
        world_size: how many ranks there are.
        host: the address at which the other machines reach this one.
        timeout: seconds to wait for the others.
    """

    def __init__(
        self, store: Any, rank: int, world_size: int, host: str, timeout: float
    ) -> None:
        store.set_timeout(timedelta(seconds=timeout))
        self._store = store
        self._world_size = world_size
        self._host = f"[{host}]" if ":" in host else host
        self._public, self._secret = zmq.curve_keypair()
        if rank:
            store.set(_key_of(rank), self._public)

    def bind(self) -> tuple[str, Curve | None]:
        ranks = range(1, self._world_size)
        clients = [bytes(self._store.get(_key_of(rank))) for rank in ranks]
        return f"tcp://{self._host}:0", Curve.server(self._secret, clients=clients)

    def bound(self, addr: str) -> None:
        self._store.set(_ADDRESS, wire.pack([addr, self._public]))

    def connect(self) -> tuple[str, Curve | None]:
        addr, public = wire.unpack(bytes(self._store.get(_ADDRESS)))
        return addr, Curve.client(public, self._secret)

    def store(self) -> Any:
        import torch.distributed as dist

        return dist.PrefixStore("msgen/group", self._store)  # type: ignore[attr-defined]


def _key_of(rank: int) -> str:
    return f"msgen/key/{rank}"


def own_host(master: str, port: int) -> str:
    """Return the address of this machine on the network that the rendezvous is in.

    Raises:
        OSError: there is no way to it.
    """
    family, kind, _, _, target = socket.getaddrinfo(
        master, port, type=socket.SOCK_DGRAM
    )[0]
    with socket.socket(family, kind) as probe:
        probe.connect(target)  # Sends nothing; it chooses the way.
        host: str = probe.getsockname()[0]
    return host

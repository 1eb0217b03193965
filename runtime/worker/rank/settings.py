"""Settings: the options of a pool, and what each rank's process gets of them when it starts.

The options stand here alone, with their defaults, their meaning and their checks: `WorkerPool` takes
its signature from `PoolOptions`, the command line fills one, and each rank gets it whole.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

from msgen.runtime.queues.endpoint import HIGH_WATER_MARK, MAX_MESSAGE_BYTES
from msgen.runtime.sockets import addresses
from msgen.runtime.sockets.curve import Curve
from msgen.runtime.worker.quarantine import DEAD_LETTER_BYTES

from .imports import load_codec, split_name


@dataclass(frozen=True)
class PoolOptions:
    """The options of a pool of workers.

    Attributes:
        handler: `package.module:Class`, derived from InferenceHandler; imported by the ranks alone.
        replies: address of the replies' queue, to which rank 0 connects.
        request_codec, reply_codec: `package.module:CODEC`.
        requests: address of the requests' queue, which rank 0 binds. None makes an ipc address,
            which `WorkerPool.addr` tells.
        options: keyword arguments of the handler's class; they are pickled.
        ranks: how many processes.
        device: `cpu`, or `cuda` for one GPU a rank.
        max_step_messages: messages of one call of the handler, at most.
        ready_timeout: seconds until all ranks must be ready.
        step_timeout: seconds that a step may take; None for ever.
        reply_timeout: seconds that replies may wait while their queue is full; None for ever.
        stop_timeout: seconds that the ranks get to stop in order.
        dead_letters: file that keeps requests that are no valid messages; None keeps none.
        dead_letter_bytes: how large it may become.
        hwm, max_message_bytes: of the two queues; see `Endpoint`.
        requests_security, replies_security: CURVE keys of the two queues, for tcp.
        bind_replies: whether rank 0 binds the replies' queue, too.
        start_method: `spawn`, or `forkserver`.

    Raises:
        ValueError: an option is out of range, or no name.
        TypeError: the handler's options cannot be pickled.
        ImportError: a codec cannot be imported.
        AddressError: an address is malformed.
    """

    handler: str
    _: KW_ONLY
    replies: str
    request_codec: str
    reply_codec: str
    requests: str | None = None
    options: Mapping[str, Any] | None = None
    ranks: int = 1
    device: str = "cpu"
    # Bounds the work of a step: what comes in a burst is taken in further steps.
    max_step_messages: int = 64
    # The largest models take minutes to load.
    ready_timeout: float = 300.0
    step_timeout: float | None = None
    reply_timeout: float | None = None
    # Service managers kill after 90: this leaves them out of it.
    stop_timeout: float = 30.0
    dead_letters: str | os.PathLike[str] | None = None
    dead_letter_bytes: int = DEAD_LETTER_BYTES
    hwm: int = HIGH_WATER_MARK
    max_message_bytes: int = MAX_MESSAGE_BYTES
    requests_security: Curve | None = None
    replies_security: Curve | None = None
    bind_replies: bool = False
    start_method: str = "spawn"

    def __post_init__(self) -> None:
        if self.start_method not in ("spawn", "forkserver"):
            raise ValueError(
                f"start_method: expected 'spawn' or 'forkserver', got {self.start_method!r}; threads "
                "of torch and CUDA do not stand a fork"
            )
        for name, least in (
            ("ranks", 1),
            ("max_step_messages", 1),
            ("dead_letter_bytes", 0),
            ("ready_timeout", 0),
            ("step_timeout", 0),
            ("reply_timeout", 0),
            ("stop_timeout", 0),
        ):
            value = getattr(self, name)
            if value is not None and not value >= least:
                raise ValueError(f"{name}: expected {least:g} or more, got {value}")
        if self.device not in ("cpu", "cuda"):
            raise ValueError(f"device: expected 'cpu' or 'cuda', got {self.device!r}")
        split_name(self.handler, "handler")
        load_codec(self.request_codec, "request_codec")
        load_codec(self.reply_codec, "reply_codec")
        # A rank gets its own copies: any mapping may come in, and a path may be relative.
        object.__setattr__(self, "options", _picklable(self.options or {}))
        if self.dead_letters is not None:
            path = str(Path(self.dead_letters).absolute())
            object.__setattr__(self, "dead_letters", path)
        addresses.parse(self.replies, create=self.bind_replies)

    @property
    def max_step_bytes(self) -> int:
        """Bytes of one step, at most."""
        return self.max_step_messages * self.max_message_bytes


def _picklable(options: Mapping[str, Any]) -> dict[str, Any]:
    for name, value in options.items():
        try:
            ForkingPickler.dumps(value)
        except Exception as error:
            raise TypeError(
                f"options[{name!r}]: cannot be sent to the ranks' processes: {error}; pass what the "
                "handler can make it of"
            ) from None
    return dict(options)


@dataclass(frozen=True)
class RankSettings:
    """What a rank's process gets when it starts.

    Attributes:
        options: of the pool.
        requests: the address of the requests' queue.
        steps: the address of the broadcast.
        rendezvous: path of the file by which the process group meets.
        parent: process id of who started it, or of the agent that did.
        world_size: how many ranks there are.
        rank, local_rank: its place among all, and among those of its machine.
    """

    options: PoolOptions
    requests: str
    steps: str
    rendezvous: str
    parent: int
    world_size: int
    rank: int = 0
    local_rank: int = 0


def first_rank(options: PoolOptions, run: str) -> RankSettings:
    """Return the settings of a pool's rank 0.

    Args:
        options: of the pool.
        run: what the processes of this pool have in common, and others do not.

    Raises:
        AddressError: the requests' address is malformed.
    """
    group = load_codec(options.request_codec, "request_codec").group
    requests = options.requests or addresses.ipc_address(group, run)
    addresses.parse(requests, create=True)
    return RankSettings(
        options,
        requests=requests,
        steps=addresses.ipc_address(f"{group}.steps", run),
        rendezvous=str(addresses.runtime_folder() / f"ranks-{run}"),
        parent=os.getpid(),
        world_size=options.ranks,
    )

"""The plan of a rank: all that its process is told when it starts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any, TypedDict

from msgen.runtime.queues.endpoint import HIGH_WATER_MARK, MAX_MESSAGE_BYTES
from msgen.runtime.sockets import addresses
from msgen.runtime.sockets.curve import Curve
from msgen.runtime.worker.quarantine import DEAD_LETTER_BYTES

from .names import load_codec, split_name

MAX_STEP_MESSAGES = 64
"""Messages of one call of the handler by default, at most."""
READY_S = 300.0
"""Seconds until all ranks must be ready, by default."""
STOP_S = 30.0
"""Seconds that ranks get to stop in order, by default."""
REPLY_LINGER_S = 5.0
"""Seconds that the last replies get to arrive."""


class PoolOptions(TypedDict, total=False):
    """The options of a pool; `WorkerPool` says what they mean."""

    requests: str | None
    options: Mapping[str, Any] | None
    ranks: int
    device: str
    max_step_messages: int
    ready_timeout: float
    step_timeout: float | None
    reply_timeout: float | None
    stop_timeout: float
    dead_letters: str | os.PathLike[str] | None
    dead_letter_bytes: int
    hwm: int
    max_message_bytes: int
    requests_security: Curve | None
    replies_security: Curve | None
    bind_replies: bool


@dataclass(frozen=True)
class QueuePlan:
    """One of the two queues of rank 0.

    Attributes:
        addr: where the two ends meet.
        codec: `module:attribute` of the codec of its messages.
        create: whether rank 0 binds.
        options: of the queue; see `Endpoint`.
    """

    addr: str
    codec: str
    create: bool
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RankPlan:
    """What a rank's process needs to know; it is sent to it when it is started.

    Attributes:
        rank, world_size, local_rank: its place.
        device: `cpu` or `cuda`.
        handler: `module:Class`.
        handler_options: keyword arguments of the class.
        requests, replies: the queues, which rank 0 alone opens.
        steps: the address of the broadcast.
        rendezvous: path of the file by which the process group meets.
        max_step_messages: messages of one call of the handler, at most.
        max_step_bytes: bytes of one step, at most.
        ready_timeout: seconds until all ranks must be ready.
        step_timeout: seconds that a step may take; None for ever.
        reply_timeout: seconds that replies may wait for room; None for ever.
        stop_timeout: seconds that the ranks get to stop in order.
        dead_letters: path of the file that keeps bad messages; None keeps none.
        dead_letter_bytes: how large it may become.
        parent: process id of who started it, or of the agent that did.
    """

    rank: int
    world_size: int
    local_rank: int
    device: str
    handler: str
    handler_options: Mapping[str, Any]
    requests: QueuePlan
    replies: QueuePlan
    steps: str
    rendezvous: str
    max_step_messages: int
    max_step_bytes: int
    ready_timeout: float
    step_timeout: float | None
    reply_timeout: float | None
    stop_timeout: float
    dead_letters: str | None
    dead_letter_bytes: int
    parent: int


def make_plan(
    handler: str,
    run: str,
    *,
    replies: str,
    request_codec: str,
    reply_codec: str,
    requests: str | None = None,
    options: Mapping[str, Any] | None = None,
    ranks: int = 1,
    device: str = "cpu",
    max_step_messages: int = MAX_STEP_MESSAGES,
    ready_timeout: float = READY_S,
    step_timeout: float | None = None,
    reply_timeout: float | None = None,
    stop_timeout: float = STOP_S,
    dead_letters: str | os.PathLike[str] | None = None,
    dead_letter_bytes: int = DEAD_LETTER_BYTES,
    hwm: int = HIGH_WATER_MARK,
    max_message_bytes: int = MAX_MESSAGE_BYTES,
    requests_security: Curve | None = None,
    replies_security: Curve | None = None,
    bind_replies: bool = False,
) -> RankPlan:
    """Check the arguments of a pool, and return the plan of its rank 0.

    Args:
        run: what the processes of this pool have in common, and others do not.
        others: see `WorkerPool`.

    Raises:
        ValueError: an argument is out of range, or no name.
        TypeError: an option of the handler cannot be pickled.
        ImportError: a codec cannot be imported.
        AddressError: an address is malformed.
    """
    _check_least("ranks", ranks, 1)
    _check_least("max_step_messages", max_step_messages, 1)
    _check_least("dead_letter_bytes", dead_letter_bytes, 0)
    for what, seconds in (
        ("ready_timeout", ready_timeout),
        ("step_timeout", step_timeout),
        ("reply_timeout", reply_timeout),
        ("stop_timeout", stop_timeout),
    ):
        if seconds is not None:
            _check_least(what, seconds, 0)
    if device not in ("cpu", "cuda"):
        raise ValueError(f"device: expected 'cpu' or 'cuda', got {device!r}")
    split_name(handler, "handler")
    group = load_codec(request_codec, "request_codec").group
    load_codec(reply_codec, "reply_codec")
    handler_options = dict(options or {})
    _check_options(handler_options)
    requests = requests or addresses.ipc_address(group, run)
    addresses.parse(requests, create=True)
    addresses.parse(replies, create=bind_replies)
    limits = {"hwm": hwm, "max_message_bytes": max_message_bytes}
    return RankPlan(
        rank=0,
        world_size=ranks,
        local_rank=0,
        device=device,
        handler=handler,
        handler_options=handler_options,
        requests=QueuePlan(
            requests, request_codec, True, {**limits, "security": requests_security}
        ),
        replies=QueuePlan(
            replies,
            reply_codec,
            bind_replies,
            {**limits, "security": replies_security, "linger": REPLY_LINGER_S},
        ),
        steps=addresses.ipc_address(f"{group}.steps", run),
        rendezvous=str(addresses.runtime_folder() / f"ranks-{run}"),
        max_step_messages=max_step_messages,
        max_step_bytes=max_step_messages * max_message_bytes,
        ready_timeout=ready_timeout,
        step_timeout=step_timeout,
        reply_timeout=reply_timeout,
        stop_timeout=stop_timeout,
        dead_letters=None
        if dead_letters is None
        else str(Path(dead_letters).absolute()),
        dead_letter_bytes=dead_letter_bytes,
        parent=os.getpid(),
    )


def _check_least(what: str, value: float, least: float) -> None:
    if not value >= least:
        raise ValueError(f"{what}: expected {least:g} or more, got {value}")


def _check_options(options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        try:
            ForkingPickler.dumps(value)
        except Exception as error:
            raise TypeError(
                f"options[{name!r}]: cannot be sent to the ranks' processes: {error}; pass what the "
                "handler can make it of"
            ) from None

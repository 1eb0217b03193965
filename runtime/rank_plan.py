"""The plan of a rank: all that its process is told when it starts."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .codec import Codec
from .handler import InferenceHandler
from .security import Curve


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
        steps_security: its keys, where it goes over tcp.
        rendezvous: path of the file by which the process group meets.
        max_step_messages: messages of one call of the handler, at most.
        step_timeout: seconds that a step may take; None for ever.
        reply_timeout: seconds that replies may wait for room; None for ever.
        ready_timeout: seconds until all ranks must be ready.
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
    step_timeout: float | None
    reply_timeout: float | None
    ready_timeout: float
    dead_letters: str | None
    dead_letter_bytes: int
    parent: int
    steps_security: Curve | None = None


def split_name(name: str, what: str) -> tuple[str, str]:
    """Take `module:attribute` apart.

    Raises:
        ValueError: it is not of this form.
    """
    module, found, attribute = name.partition(":")
    if not (found and module and attribute) or ":" in attribute:
        raise ValueError(
            f"{what}: expected 'package.module:name', got {name!r}; processes of their own import "
            "it by that name"
        )
    return module, attribute


def load(name: str, what: str) -> Any:
    """Import what `module:attribute` names.

    Raises:
        ValueError: the form is wrong, or the module has no such attribute.
        ImportError: the module cannot be imported.
    """
    module, attribute = split_name(name, what)
    found = importlib.import_module(module)
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise ValueError(
                f"{what}: module {module!r} has no {attribute!r}"
            ) from None
    return found


def load_codec(name: str, what: str) -> Codec[Any]:
    """Import a codec.

    Raises:
        ValueError, ImportError: as for `load`; what is found is no codec.
    """
    codec = load(name, what)
    if not isinstance(codec, Codec):
        raise ValueError(
            f"{what}: {name!r} is a {type(codec).__name__}, expected a codec, such as "
            "'msgen.generated.backend:CODEC'"
        )
    return codec


def load_handler(name: str) -> type[InferenceHandler]:
    """Import a handler's class.

    Raises:
        ValueError, ImportError: as for `load`; what is found is no handler.
    """
    handler = load(name, "handler")
    if not (isinstance(handler, type) and issubclass(handler, InferenceHandler)):
        raise ValueError(
            f"handler: {name!r} is not a class derived from "
            "msgen.runtime.worker.InferenceHandler"
        )
    return handler

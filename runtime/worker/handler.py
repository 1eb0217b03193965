"""The handler: what users of the workers write, and what it gets to know of its rank."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


@dataclass(frozen=True)
class WorkerContext:
    """What a handler gets to know when it is set up.

    Attributes:
        rank: of this process, from 0.
        world_size: how many ranks there are.
        local_rank: this rank's number among those of its machine.
        device: where the model belongs: `cpu`, or `cuda:<local rank>`, which is the current device.
        group: the process group of all ranks, by gloo or NCCL; None where there is one rank alone.
            It is also torch's default group.
        options: what the pool was given for the handler.
        stop: ends the pool in order once the current step is done; what rank 0 says counts, so call
            it on all ranks alike.
    """

    rank: int
    world_size: int
    local_rank: int
    device: torch.device
    group: ProcessGroup | None
    options: Mapping[str, Any]
    stop: Callable[[], None] = field(repr=False)


class InferenceHandler(ABC):
    """Turns messages into replies; one object in each rank, made with the pool's options.

    All ranks get the same steps with the same messages in the same order, so collectives of torch
    meet. What decides their course must therefore follow from the messages alone: not from the
    clock, the rank or an unseeded random number.
    """

    def setup(self, context: WorkerContext) -> None:  # noqa: B027
        """Load what is needed; requests are taken once all ranks have done so."""

    @abstractmethod
    def step(self, messages: list[Any]) -> list[Any]:
        """Take in messages, do one step of work, and return replies.

        Args:
            messages: of the requests' group, as many as were there up to `max_step_messages`, batches
                opened. Empty where no message came and `busy` was true.

        Returns:
            Messages of the replies' group. Rank 0 sends its own; those of other ranks are dropped,
            so these may save the work and return none.
        """

    @property
    def busy(self) -> bool:
        """Whether work is left, so that `step` is called again although no message came.

        Rank 0 is asked, before each step, and all ranks follow.
        """
        return False

    def on_error(self, messages: list[Any], error: Exception) -> list[Any]:
        """Answer messages whose step raised an error, or raise, which ends the pool.

        Every rank is asked where the step raised on every rank. If it raised on some ranks only,
        they have lost step with the others: the pool ends, whatever this returns.

        Args:
            messages: those of the step.
            error: what `step` raised.

        Returns:
            Replies, as of `step`.
        """
        raise error

    def close(self) -> None:  # noqa: B027
        """Let go of what `setup` took; called when the pool ends in order."""

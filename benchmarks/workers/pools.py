"""The pools that are measured, each with the ends of queues that face it."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from msgen.runtime.launch import WorkerPool
from msgen.runtime.worker import InferenceHandler

from ..queues.cases import BATCH

RANKS = (1, 2, 4)
_CODEC = "msgen.generated.tokenizer:CODEC"

Pools = Mapping[tuple[int, int], WorkerPool]
"""Pools by their number of ranks, and by the most messages that a step may have."""


class Null(InferenceHandler):
    """Does nothing: each request is its own reply."""

    def step(self, messages: list[Any]) -> list[Any]:
        return messages


@contextmanager
def start_pools(folder: Path) -> Iterator[Pools]:
    """Start all pools. They are idle unless they are measured: a rank that waits takes no time."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(
        ["msgen.runtime.launch", "msgen.generated.tokenizer"]
    )
    with ExitStack() as stack:
        yield {
            (ranks, limit): stack.enter_context(
                WorkerPool(
                    f"{__name__}:Null",
                    replies=replies_of(folder, ranks, limit),
                    request_codec=_CODEC,
                    reply_codec=_CODEC,
                    ranks=ranks,
                    max_step_messages=limit,
                    bind_replies=True,
                    start_method="forkserver",
                )
            )
            for limit in (1, BATCH)
            for ranks in RANKS
        }


def replies_of(folder: Path, ranks: int, limit: int) -> str:
    """Return where the replies of a pool are."""
    return f"ipc://{folder}/replies-{ranks}-{limit}"


def ranks_text(ranks: int) -> str:
    """Return what tables call a pool."""
    return f"worker, {ranks} rank{'s' if ranks > 1 else ''}"

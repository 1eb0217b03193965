"""Handlers of tests: ranks import them by name.

Requests are of the group backend, replies of the group tokenizer.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import signal
import subprocess
import sys
import time
from typing import Any

import torch
import torch.distributed as dist
from msgen.generated import backend, tokenizer
from msgen.generated.common import SamplingParams
from msgen.runtime.worker import InferenceHandler, WorkerContext

TROUBLE = 13
"""The number of a request that makes trouble."""


def token(uid: int, number: int = 0, finished: bool = True) -> tokenizer.DetokenizeMsg:
    return tokenizer.DetokenizeMsg(uid, number, finished)


def text(uid: int, value: object) -> tokenizer.TokenizeMsg:
    return tokenizer.TokenizeMsg(uid, str(value), SamplingParams())


class Echo(InferenceHandler):
    """Answers each request with its number; ends at ExitMsg."""

    def setup(self, context: WorkerContext) -> None:
        self.context = context

    def step(self, messages: list[Any]) -> list[Any]:
        replies: list[Any] = []
        for message in messages:
            if isinstance(message, backend.ExitMsg):
                self.context.stop()
            else:
                replies.append(token(message.uid))
        return replies


class Chain(InferenceHandler):
    """Answers each request with a digest of all that it saw so far.

    At ExitMsg it answers with what each rank saw: a digest of its steps, boundaries included.
    """

    def setup(self, context: WorkerContext) -> None:
        self.context = context
        self.messages = hashlib.sha256()
        self.steps = hashlib.sha256()

    def step(self, messages: list[Any]) -> list[Any]:
        self.steps.update(b"%d:" % len(messages))
        replies: list[Any] = []
        for message in messages:
            encoded = backend.encode(message)
            self.messages.update(encoded)
            self.steps.update(encoded)
            if isinstance(message, backend.ExitMsg):
                replies.append(text(-1, " ".join(self._of_all_ranks())))
            else:
                replies.append(text(message.uid, self.messages.hexdigest()))
        return replies

    def _of_all_ranks(self) -> list[str]:
        own = torch.tensor(list(self.steps.digest()), dtype=torch.uint8)
        if self.context.group is None:
            return [bytes(own.tolist()).hex()]
        gathered = [torch.empty_like(own) for _ in range(self.context.world_size)]
        dist.all_gather(gathered, own, group=self.context.group)
        return [bytes(each.tolist()).hex() for each in gathered]


class Countdown(InferenceHandler):
    """Answers a request of n tokens in n steps, all ranks together in each of them."""

    def setup(self, context: WorkerContext) -> None:
        self.context = context
        self.left: dict[int, int] = {}
        self.empty_steps = 0

    def step(self, messages: list[Any]) -> list[Any]:
        for message in messages:
            self.left[message.uid] = len(message.input_ids)
        self.empty_steps += not messages
        ranks = torch.ones(1)
        if self.context.group is not None:
            dist.all_reduce(ranks, group=self.context.group)
        assert int(ranks) == self.context.world_size
        replies: list[Any] = []
        for uid in list(self.left):
            self.left[uid] -= 1
            replies.append(token(uid, self.left[uid], not self.left[uid]))
            if not self.left[uid]:
                del self.left[uid]
        return replies

    @property
    def busy(self) -> bool:
        return bool(self.left)


class Sizes(InferenceHandler):
    """Answers each call with the number of its messages."""

    def step(self, messages: list[Any]) -> list[Any]:
        return [token(0, len(messages))]


class Places(InferenceHandler):
    """Answers with what it was told of its place."""

    def __init__(self, greeting: str) -> None:
        self.greeting = greeting

    def setup(self, context: WorkerContext) -> None:
        self.context = context

    def step(self, messages: list[Any]) -> list[Any]:
        context = self.context
        group = None if context.group is None else context.group.size()
        told = (
            f"{self.greeting} {context.rank} {context.world_size} {context.local_rank} "
            f"{context.device} {group} {dict(context.options)} {torch.get_num_threads()}"
        )
        return [text(0, told)]


class Together(InferenceHandler):
    """All ranks exchange something in each step, so that one that is gone keeps the others."""

    def setup(self, context: WorkerContext) -> None:
        self.group = context.group

    def step(self, messages: list[Any]) -> list[Any]:
        if self.group is not None:
            dist.all_reduce(torch.ones(1000), group=self.group)
        return [token(message.uid) for message in messages]


class TogetherOnGpu(InferenceHandler):
    """Counts the ranks in each step, by NCCL."""

    def setup(self, context: WorkerContext) -> None:
        self.context = context

    def step(self, messages: list[Any]) -> list[Any]:
        ranks = torch.ones(1, device=self.context.device)
        dist.all_reduce(ranks, group=self.context.group)
        return [token(message.uid, int(ranks)) for message in messages]


class Troubled(InferenceHandler):
    """Gets into trouble at a certain request.

    Args:
        kind: of trouble.
        ranks: which of them get into it; None for all.
    """

    def __init__(self, kind: str, ranks: list[int] | None = None) -> None:
        self.kind = kind
        self.ranks = ranks

    def setup(self, context: WorkerContext) -> None:
        self.context = context
        self.mine = self.ranks is None or context.rank in self.ranks
        if self.kind.startswith("setup-") and self.mine:
            getattr(self, self.kind.removeprefix("setup-"))()

    def step(self, messages: list[Any]) -> list[Any]:
        if self.mine and any(message.uid == TROUBLE for message in messages):
            return getattr(self, self.kind)() or []
        return [token(message.uid) for message in messages]

    def fail(self) -> None:
        raise ValueError("number 13 is bad")

    def exit(self) -> None:
        sys.exit(3)

    def exit_at_once(self) -> None:
        os._exit(3)

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def crash(self) -> None:
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGSEGV)

    def exhaust(self) -> None:
        bytearray(1 << 60)

    def exhaust_gpu(self) -> None:
        torch.empty(1 << 50, dtype=torch.uint8, device=self.context.device)

    def hang(self) -> None:
        time.sleep(1e6)

    def ignore_all(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self.hang()

    def hang_with_the_lock(self) -> None:
        # Unlike those of CDLL, its functions keep Python's lock.
        ctypes.PyDLL(None).sleep(1_000_000)

    def wait_for_others(self) -> None:
        dist.barrier(group=self.context.group)

    def return_nothing(self) -> None:
        return None

    def answer_wrongly(self) -> list[Any]:
        return [token(TROUBLE, "no number")]  # type: ignore[arg-type]


class NoReplies(Echo):
    """Forgets to return its replies."""

    def step(self, messages: list[Any]) -> list[Any]:
        return None  # type: ignore[return-value]


class Answering(Troubled):
    """Answers requests that it cannot serve."""

    def on_error(self, messages: list[Any], error: Exception) -> list[Any]:
        return [text(message.uid, f"sorry: {error}") for message in messages]


class NoHandler:
    """Does not derive from InferenceHandler."""


class Nested(Echo):
    """Starts a process that would outlive it."""

    def setup(self, context: WorkerContext) -> None:
        super().setup(context)
        self.child = subprocess.Popen(["sleep", "1000000"])

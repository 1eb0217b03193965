"""Which requests a forward pass advances: continuous batching over one KV cache.

A request waits until the cache has room for its tokens, and then runs. Each pass advances every
running request: one that is being decoded by a token, and one whose prompt is not in the cache yet by
a piece of it, so that a long prompt does not hold up the others. Requests join and leave between
any two passes.

When the cache is full, the youngest running request gives its slots back and waits again; its
tokens, generated ones too, are computed anew later.

All ranks decide alike: nothing here depends on the clock, the rank, or chance.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import torch
from msgen.generated.common import SamplingParams
from torch import Tensor

from ..model.kv_cache import Advance, KVCache


@dataclass(eq=False)
class Request:
    """A request, and how far it is.

    Attributes:
        uid: its number.
        tokens: ids of its prompt and of what was generated.
        params: how to choose its tokens.
        chance: its own source of randomness.
        prompt_tokens: how many of the tokens are the prompt.
        slots: (length,), int64: where the keys and values of its tokens are, longer than needed.
        cached: how many of the tokens have slots.
    """

    uid: int
    tokens: list[int]
    params: SamplingParams
    chance: torch.Generator = field(default_factory=torch.Generator)
    prompt_tokens: int = field(init=False)
    slots: Tensor = field(init=False)
    cached: int = 0

    def __post_init__(self) -> None:
        self.prompt_tokens = len(self.tokens)
        most = len(self.tokens) + self.params.max_tokens
        self.slots = torch.empty(most, dtype=torch.int64)
        self.chance.manual_seed(self.uid)

    @property
    def completion_tokens(self) -> int:
        """How many tokens were generated."""
        return len(self.tokens) - self.prompt_tokens

    @property
    def outstanding(self) -> int:
        """How many of its tokens must be computed before the next one can be chosen."""
        return len(self.tokens) - self.cached


class Scheduler:
    """The requests that wait and those that run.

    Args:
        cache: slots for their keys and values.
        max_running: how many run at the same time, at most.
        max_tokens: how many tokens of prompts a forward pass takes, at most.

    Attributes:
        waiting: first come, first served.
        running: in the order in which they began.
    """

    def __init__(self, cache: KVCache, max_running: int, max_tokens: int) -> None:
        self._cache = cache
        self._max_running = max_running
        self._max_tokens = max_tokens
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []

    def add(self, request: Request) -> None:
        """Let a request wait for its turn."""
        self.waiting.append(request)

    def find(self, uid: int) -> Request | None:
        """Return the request with this number, if it is here."""
        for request in (*self.running, *self.waiting):
            if request.uid == uid:
                return request
        return None

    def remove(self, request: Request) -> None:
        """Forget a request, which has ended, and free its slots."""
        if request in self.running:
            self.running.remove(request)
            self._free(request)
        else:
            self.waiting.remove(request)

    def plan(self) -> list[tuple[Request, Advance]]:
        """Choose what the next forward pass computes, and take the slots for it.

        Returns:
            Each request with its part, those of one token first.
        """
        self._admit()
        # Decoding comes first, since each pass is to bring every client a token.
        by_turn = sorted(self.running, key=lambda request: request.outstanding > 1)
        planned: dict[Request, int] = {}
        room = self._max_tokens
        for request in by_turn:
            decoding = request.outstanding == 1
            count = 1 if decoding else min(request.outstanding, room)
            if count and self._make_room(request, count, planned):
                self._take(request, count)
                planned[request] = count
                room -= 0 if decoding else count
        parts = [(request, _part(request, count)) for request, count in planned.items()]
        return sorted(parts, key=lambda part: len(part[1].tokens) > 1)

    def _admit(self) -> None:
        promised = sum(request.outstanding for request in self.running)
        while self.waiting and len(self.running) < self._max_running:
            first = self.waiting[0]
            if first.outstanding + promised > self._cache.free:
                break
            promised += first.outstanding
            self.running.append(self.waiting.popleft())

    def _make_room(
        self, request: Request, count: int, planned: dict[Request, int]
    ) -> bool:
        """Have so many slots free, at the expense of the youngest; False if that is the request."""
        while request in self.running and self._cache.free < count:
            youngest = self.running.pop()
            self._free(youngest)
            planned.pop(youngest, None)
            self.waiting.appendleft(youngest)
        return request in self.running

    def _take(self, request: Request, count: int) -> None:
        start, stop = request.cached, request.cached + count
        request.slots[start:stop] = self._cache.take(count)
        request.cached = stop

    def _free(self, request: Request) -> None:
        self._cache.give_back(request.slots[: request.cached])
        request.cached = 0


def _part(request: Request, count: int) -> Advance:
    start = request.cached - count
    return Advance(
        request.tokens[start : request.cached], start, request.slots[: request.cached]
    )

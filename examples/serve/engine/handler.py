"""The handler that runs in every rank: messages to forward passes, and tokens back.

Each step takes in what has come, and then advances all running requests by one forward pass. Rank 0
chooses the tokens and gives them to the others, so that all go on alike whatever the rounding of
their sums.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from msgen.generated import backend
from msgen.generated.common import EngineStats, Failure, FailureKind, FinishReason
from msgen.generated.tokenizer import DetokenizeMsg, FinishMsg, PongMsg
from msgen.runtime.worker import InferenceHandler, WorkerContext
from torch import Tensor

from ..model import llama, tensor_parallel
from ..model.kv_cache import KVCache, batch_of
from . import sampling
from .scheduler import Request, Scheduler


class Engine(InferenceHandler):
    """Answers requests of the group `backend` with messages of the group `tokenizer`.

    Args:
        model: folder of the model.
        context: tokens that a request may come to, prompt and answer.
        cache_tokens: tokens that the cache holds, of all requests together.
        max_running: requests that run at the same time, at most.
        max_waiting: requests that wait, at most; beyond them new ones are refused.
        max_step_tokens: tokens of prompts in one forward pass, at most.
        threads: of PyTorch, on the CPU; None leaves it to the pool.
    """

    def __init__(
        self,
        model: str,
        context: int,
        cache_tokens: int,
        max_running: int,
        max_waiting: int,
        max_step_tokens: int,
        threads: int | None = None,
    ) -> None:
        self._folder = Path(model)
        self._context = context
        self._cache_tokens = cache_tokens
        self._max_running = max_running
        self._max_waiting = max_waiting
        self._max_step_tokens = max_step_tokens
        self._threads = threads

    def setup(self, context: WorkerContext) -> None:
        """Load the model, keep this rank's part, and make the cache."""
        if self._threads is not None and context.device.type == "cpu":
            torch.set_num_threads(self._threads)
        self._rank, self._ranks = context.rank, context.world_size
        self._device, self._group = context.device, context.group
        self._model = llama.load(self._folder)
        config = self._model.config
        most = min(config.max_position_embeddings, self._cache_tokens)
        if self._context > most:
            raise ValueError(f"context: expected at most {most}, got {self._context}")
        # float32 on the CPU: there, small types are slower.
        dtype = torch.float32 if self._device.type == "cpu" else torch.bfloat16
        self._model.to(self._device, dtype)
        if self._group is not None:
            tensor_parallel.split(self._model, self._group, self._device.type)
        self._cache = KVCache(
            self._cache_tokens,
            config.num_hidden_layers,
            tensor_parallel.kv_heads(config, self._ranks),
            config.head_dim,
            self._device,
            dtype,
        )
        self._scheduler = Scheduler(
            self._cache, self._max_running, self._max_step_tokens
        )
        self._finished = self._aborted = self._failed = 0
        self._forwards = self._largest_batch = 0

    @property
    def busy(self) -> bool:
        """Whether any request is left."""
        return bool(self._scheduler.running or self._scheduler.waiting)

    @torch.no_grad()
    def step(self, messages: list[Any]) -> list[Any]:
        """Take messages in, and advance all running requests."""
        replies: list[Any] = []
        for message in messages:
            if isinstance(message, backend.UserMsg):
                replies += self._begin(message)
            elif isinstance(message, backend.AbortBackendMsg):
                replies += self._abort(message.uid)
            elif isinstance(message, backend.PingBackendMsg):
                replies.append(PongMsg(message.uid, self._stats()))
        return replies + self._forward()

    def _begin(self, message: backend.UserMsg) -> list[Any]:
        problem = self._problem(message)
        if problem is not None:
            return [self._refuse(message, FailureKind.invalid, problem)]
        if len(self._scheduler.waiting) >= self._max_waiting:
            text = f"{self._max_waiting} requests wait already; try again later"
            return [self._refuse(message, FailureKind.busy, text)]
        tokens = message.input_ids.tolist()
        self._scheduler.add(Request(message.uid, tokens, message.sampling_params))
        return []

    def _refuse(
        self, message: backend.UserMsg, kind: FailureKind, text: str
    ) -> FinishMsg:
        self._failed += 1
        counts = (len(message.input_ids), 0)
        failure = Failure(kind, text)
        return FinishMsg(message.uid, FinishReason.error, *counts, failure)

    def _problem(self, message: backend.UserMsg) -> str | None:
        """Say why a request cannot be run: the sender may be another than our tokenizer."""
        ids = message.input_ids
        if self._scheduler.find(message.uid) is not None:
            return f"uid: {message.uid} is the number of another request"
        if not len(ids):
            return "input_ids: expected a token at least, got none"
        vocabulary = self._model.config.vocab_size
        if int(ids.min()) < 0 or int(ids.max()) >= vocabulary:
            return f"input_ids: expected ids from 0 to {vocabulary - 1}"
        wrong = sampling.problem(message.sampling_params)
        if wrong is not None:
            return f"sampling_params.{wrong}"
        most = len(ids) + message.sampling_params.max_tokens
        if most > self._context:
            return (
                f"input_ids, sampling_params.max_tokens: {len(ids)} and "
                f"{message.sampling_params.max_tokens} tokens are more than the context of "
                f"{self._context}"
            )
        return None

    def _abort(self, uid: int) -> list[Any]:
        request = self._scheduler.find(uid)
        if request is None:
            return []  # It came to its end meanwhile.
        self._scheduler.remove(request)
        self._aborted += 1
        return [_finish(request, FinishReason.abort)]

    def _forward(self) -> list[Any]:
        parts = self._scheduler.plan()
        if not parts:
            return []
        batch = batch_of([part for _, part in parts], self._device)
        logits = self._model(batch, self._cache)
        self._forwards += 1
        self._largest_batch = max(self._largest_batch, len(parts))
        requests = [request for request, _ in parts]
        tokens = self._choose(requests, logits)
        replies: list[Any] = []
        for request, token in zip(requests, tokens):
            # A prompt that is not complete has no next token yet.
            if not request.outstanding:
                replies += self._append(request, token)
        return replies

    def _choose(self, requests: list[Request], logits: Tensor) -> list[int]:
        chosen = torch.zeros(len(requests), dtype=torch.int64)
        if self._rank == 0:
            rows = logits.cpu()
            for number, request in enumerate(requests):
                if not request.outstanding:
                    chosen[number] = sampling.choose(
                        rows[number], request.params, request.chance
                    )
        if self._group is not None:
            chosen = chosen.to(self._device)
            dist.broadcast(chosen, 0, self._group)
        return chosen.tolist()

    def _append(self, request: Request, token: int) -> list[Any]:
        request.tokens.append(token)
        params = request.params
        reason = None
        if token == self._model.config.eos_token_id and not params.ignore_eos:
            reason = FinishReason.stop
        elif request.completion_tokens == params.max_tokens:
            reason = FinishReason.length
        reply = DetokenizeMsg(request.uid, token, reason is not None)
        if reason is None:
            return [reply]
        self._scheduler.remove(request)
        self._finished += 1
        return [reply, _finish(request, reason)]

    def _stats(self) -> EngineStats:
        # A sum over the ranks: the answer shows that each of them took part.
        ranks = torch.ones(1, dtype=torch.int64, device=self._device)
        if self._group is not None:
            dist.all_reduce(ranks, group=self._group)
        return EngineStats(
            ranks=int(ranks),
            running=len(self._scheduler.running),
            waiting=len(self._scheduler.waiting),
            finished=self._finished,
            aborted=self._aborted,
            failed=self._failed,
            forwards=self._forwards,
            largest_batch=self._largest_batch,
            free_tokens=self._cache.free,
            total_tokens=self._cache.total,
        )


def _finish(request: Request, reason: FinishReason) -> FinishMsg:
    counts = (request.prompt_tokens, request.completion_tokens)
    return FinishMsg(request.uid, reason, *counts, failure=None)

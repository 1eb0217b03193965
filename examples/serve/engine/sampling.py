"""Chooses the next token of each request, by its own parameters."""

from __future__ import annotations

import math

import torch
from msgen.generated.common import SamplingParams
from torch import Tensor


def problem(params: SamplingParams) -> str | None:
    """Say what is wrong with sampling parameters; None if nothing is."""
    if not (math.isfinite(params.temperature) and params.temperature >= 0):
        return f"temperature: expected 0 or more, got {params.temperature}"
    if params.top_k != -1 and params.top_k < 1:
        return f"top_k: expected -1 for all tokens, or 1 or more, got {params.top_k}"
    if not 0 < params.top_p <= 1:
        return f"top_p: expected more than 0 and at most 1, got {params.top_p}"
    if params.max_tokens < 1:
        return f"max_tokens: expected 1 or more, got {params.max_tokens}"
    return None


def choose(logits: Tensor, params: SamplingParams, chance: torch.Generator) -> int:
    """Choose one token.

    Args:
        logits: (vocabulary,), float32, on the CPU.
        params: what is asked for; temperature 0 takes the most likely token.
        chance: the request's own source of randomness, on the CPU, so that its tokens do not depend on
            what else is in the batch.
    """
    if params.temperature == 0 or params.top_k == 1:
        return int(logits.argmax())
    scaled = logits / params.temperature
    if params.top_k == -1 and params.top_p == 1:
        return int(torch.multinomial(scaled.softmax(0), 1, generator=chance))
    kept = len(scaled) if params.top_k == -1 else min(params.top_k, len(scaled))
    best, tokens = scaled.topk(kept)
    likelihoods = best.softmax(0)
    # A token stays while those before it have not reached the mass; so the first always does.
    before = likelihoods.cumsum(0) - likelihoods
    likelihoods = likelihoods.where(before < params.top_p, 0)
    return int(tokens[torch.multinomial(likelihoods, 1, generator=chance)])

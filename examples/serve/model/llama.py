"""A Llama in PyTorch that advances many requests in one forward pass.

The pass takes tokens of all requests in one row, one after the other: one token of each request
that is being decoded, and pieces of prompts. Everything but attention treats a token like any
other. Attention reads each request's keys and values from the cache, by the slots that the request
holds there: all decoded requests together, padded to the longest, and each prompt alone.

Weights have the names of Hugging Face's checkpoints.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention, silu

from .kv_cache import Batch, KVCache


@dataclass(frozen=True)
class LlamaConfig:
    """Sizes of the model; the names are those of config.json."""

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    rms_norm_eps: float
    rope_theta: float
    max_position_embeddings: int
    vocab_size: int
    eos_token_id: int
    tie_word_embeddings: bool

    @classmethod
    def load(cls, folder: Path) -> LlamaConfig:
        """Read config.json; keys that mean nothing here are left out.

        Raises:
            ValueError: it describes what this module cannot compute.
        """
        path = folder / "config.json"
        found = json.loads(path.read_text())
        for key in ("rope_scaling", "attention_bias", "mlp_bias"):
            if found.get(key):
                raise ValueError(f"{path}: {key} is not supported")
        missing = cls.__dataclass_fields__.keys() - found.keys()
        if missing:
            raise ValueError(f"{path}: has no {', '.join(sorted(missing))}")
        return cls(**{name: found[name] for name in cls.__dataclass_fields__})

    def check_ranks(self, ranks: int) -> None:
        """Raise ValueError if the model cannot be split over so many ranks."""
        for name in ("intermediate_size", "vocab_size"):
            size = getattr(self, name)
            if size % ranks:
                fit = [str(n) for n in range(1, 17) if self._divides(n)]
                raise ValueError(
                    f"the model's {name} of {size} does not divide by {ranks} ranks; "
                    f"{', '.join(fit)} would do"
                )

    def _divides(self, ranks: int) -> bool:
        return self.intermediate_size % ranks == self.vocab_size % ranks == 0


class Rope(nn.Module):
    """Rotary position embedding: turns the two halves of each head against each other."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        exponents = torch.arange(0, config.head_dim, 2).float() / config.head_dim
        positions = torch.arange(config.max_position_embeddings).float()
        angles = torch.outer(positions, config.rope_theta**-exponents)
        table = torch.stack([angles.cos(), angles.sin()], 1)
        self.register_buffer("table", table, persistent=False)
        self.table: Tensor  # (positions, 2, head_dim / 2)

    def forward(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines for positions (tokens,), each (tokens, 1, head_dim / 2)."""
        cos, sin = self.table[positions].unbind(1)
        return cos.unsqueeze(1), sin.unsqueeze(1)


def rotate(x: Tensor, rope: tuple[Tensor, Tensor]) -> Tensor:
    """Turn heads (tokens, heads, head_dim) to their tokens' positions."""
    cos, sin = rope
    left, right = x.float().chunk(2, -1)
    turned = torch.cat([left * cos - right * sin, right * cos + left * sin], -1)
    return turned.type_as(x)


class Attention(nn.Module):
    """Grouped-query attention over the cache."""

    def __init__(self, config: LlamaConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.head_dim = config.head_dim
        width = config.num_attention_heads * config.head_dim
        kv_width = config.num_key_value_heads * config.head_dim
        self.q_proj = nn.Linear(config.hidden_size, width, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, kv_width, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, kv_width, bias=False)
        self.o_proj = nn.Linear(width, config.hidden_size, bias=False)

    def forward(
        self, x: Tensor, rope: tuple[Tensor, Tensor], batch: Batch, cache: KVCache
    ) -> Tensor:
        # How many heads there are follows from the weights: a rank may hold only some.
        q = rotate(self.q_proj(x).unflatten(-1, (-1, self.head_dim)), rope)
        k = rotate(self.k_proj(x).unflatten(-1, (-1, self.head_dim)), rope)
        v = self.v_proj(x).unflatten(-1, (-1, self.head_dim))
        cache.write(self.layer, batch.slots, k, v)
        mixed = torch.empty_like(q)
        decoded = batch.decoded
        if decoded is not None:
            rows = len(decoded.context)
            mixed[:rows] = self._decoded(q[:rows], *decoded.read(cache, self.layer))
        for piece in batch.pieces:
            keys, values = cache.read(self.layer, piece.context)
            rows_of = slice(piece.start, piece.stop)
            mixed[rows_of] = _attend(q[rows_of], keys, values, piece.mask)
        return self.o_proj(mixed.flatten(1))  # type: ignore[no-any-return]

    def _decoded(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        """One query a request: q (requests, heads, dim), k and v (requests, length, kv, dim)."""
        # The heads of a group share their keys, so they are queries of one attention.
        grouped = q.view(len(q), k.shape[2], -1, self.head_dim)
        mixed = scaled_dot_product_attention(
            grouped, k.transpose(1, 2), v.transpose(1, 2), attn_mask=mask
        )
        return mixed.flatten(1, 2)


def _attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """A piece of one prompt: q (tokens, heads, dim), k and v (length, kv, dim)."""
    mixed = scaled_dot_product_attention(
        q.transpose(0, 1).unsqueeze(0),
        k.transpose(0, 1).unsqueeze(0),
        v.transpose(0, 1).unsqueeze(0),
        attn_mask=mask,
        enable_gqa=True,
    )
    return mixed.squeeze(0).transpose(0, 1)


class MLP(nn.Module):
    """The gated feed-forward network."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        outer, inner = config.hidden_size, config.intermediate_size
        self.gate_proj = nn.Linear(outer, inner, bias=False)
        self.up_proj = nn.Linear(outer, inner, bias=False)
        self.down_proj = nn.Linear(inner, outer, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gated = silu(self.gate_proj(x)) * self.up_proj(x)
        return self.down_proj(gated)  # type: ignore[no-any-return]


class Layer(nn.Module):
    """One decoder layer."""

    def __init__(self, config: LlamaConfig, layer: int) -> None:
        super().__init__()
        size, eps = config.hidden_size, config.rms_norm_eps
        self.input_layernorm = nn.RMSNorm(size, eps)
        self.self_attn = Attention(config, layer)
        self.post_attention_layernorm = nn.RMSNorm(size, eps)
        self.mlp = MLP(config)

    def forward(
        self, x: Tensor, rope: tuple[Tensor, Tensor], batch: Batch, cache: KVCache
    ) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), rope, batch, cache)
        return x + self.mlp(self.post_attention_layernorm(x))  # type: ignore[no-any-return]


class Decoder(nn.Module):
    """All but the head."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(
            Layer(config, number) for number in range(config.num_hidden_layers)
        )
        self.norm = nn.RMSNorm(config.hidden_size, config.rms_norm_eps)


class Llama(nn.Module):
    """The model with its head."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.config = config
        self.model = Decoder(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.rope = Rope(config)

    def forward(self, batch: Batch, cache: KVCache) -> Tensor:
        """Advance the batch's requests; keys and values of its tokens go to the cache.

        Returns:
            Logits (requests, vocabulary), float32, of the last token of each request in the batch.
        """
        x = self.model.embed_tokens(batch.tokens)
        rope = self.rope(batch.positions)
        for layer in self.model.layers:
            x = layer(x, rope, batch, cache)
        return self.lm_head(self.model.norm(x[batch.last])).float()  # type: ignore[no-any-return]


def load(folder: Path) -> Llama:
    """Load the model on the CPU; weights stay mapped from the file, shared by all ranks."""
    config = LlamaConfig.load(folder)
    with torch.device("meta"):
        llama = Llama(config)
    weights = load_file(folder / "model.safetensors")
    if config.tie_word_embeddings:
        weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    llama.load_state_dict(weights, assign=True)
    llama.rope = Rope(config)
    return llama.eval().requires_grad_(False)

"""A Llama of a few thousand weights, random, for tests of examples/serve without processes."""

from __future__ import annotations

import json
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from msgen.generated import backend
from msgen.generated.common import SamplingParams
from msgen.generated.tokenizer import DetokenizeMsg
from msgen.runtime.worker import WorkerContext
from safetensors.torch import save_file
from serve.engine.handler import Engine
from serve.model import tensor_parallel
from serve.model.kv_cache import Advance, KVCache, batch_of
from serve.model.llama import Llama, LlamaConfig, load
from torch import Tensor

CPU = torch.device("cpu")
CONTEXT = 96
# Heads divide by 2 and not by 3; the feed-forward network and the vocabulary divide by both.
SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10_000.0,
    "max_position_embeddings": CONTEXT,
    "vocab_size": 60,
    "eos_token_id": 0,
    "tie_word_embeddings": True,
}


def write_tiny(folder: Path, **sizes: Any) -> Path:
    """Write config.json and model.safetensors; other sizes than SIZES may be given."""
    config = {**SIZES, **sizes}
    (folder / "config.json").write_text(json.dumps(config))
    torch.manual_seed(1)
    llama = Llama(LlamaConfig(**config))
    weights = {
        # Larger than usual, so that what is likely depends on the tokens before.
        name: torch.randn_like(weight) * 0.4 if weight.dim() > 1 else weight
        for name, weight in llama.state_dict().items()
        if name != "lm_head.weight"
    }
    save_file(weights, folder / "model.safetensors")
    return folder


def cache_for(llama: Llama, slots: int, kv_heads: int | None = None) -> KVCache:
    config = llama.config
    heads = config.num_key_value_heads if kv_heads is None else kv_heads
    sizes = (slots, config.num_hidden_layers, heads, config.head_dim)
    return KVCache(*sizes, CPU, torch.float32)


def logits_of(
    llama: Llama, cache: KVCache, tokens: list[int], pieces: list[int]
) -> Tensor:
    """The logits behind a prompt that is computed in pieces of these sizes."""
    slots = cache.take(len(tokens))
    done = 0
    for size in pieces:
        part = Advance(tokens[done : done + size], done, slots[: done + size])
        logits: Tensor = llama(batch_of([part], CPU), cache)
        done += size
    cache.give_back(slots)
    return logits[0]


def split_logits(
    folder: str, rank: int, ranks: int, tokens: list[int], result: Connection
) -> None:
    """The process of a rank: report what it holds of the weights, and the logits behind a prompt.

    They must be plain tensors: one that is still being gathered would be kept until it is used.
    """
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/group", rank=rank, world_size=ranks
    )
    llama = load(Path(folder))
    group = dist.group.WORLD
    assert group is not None
    tensor_parallel.split(llama, group, "cpu")
    attention: Any = llama.model.layers[0].self_attn
    with torch.no_grad():
        heads = tensor_parallel.kv_heads(llama.config, ranks)
        cache = cache_for(llama, len(tokens), heads)
        logits = logits_of(llama, cache, tokens, [5, 1, len(tokens) - 6])
        rows = attention.q_proj(torch.zeros(1, 32)).shape[-1]
    assert type(logits) is Tensor
    result.send((rows, logits.tolist()))
    dist.destroy_process_group()


def engine(folder: Path, **options: int) -> Engine:
    """An engine on one rank, in this process."""
    sizes = {
        "cache_tokens": 512,
        "max_running": 8,
        "max_waiting": 100,
        "max_step_tokens": 32,
        **options,
    }
    made = Engine(model=str(folder), context=CONTEXT, **sizes)
    made.setup(WorkerContext(0, 1, 0, CPU, None, {}, lambda: None))
    return made


def request(uid: int, tokens: list[int], **params: Any) -> backend.UserMsg:
    wanted = {"max_tokens": 12, "ignore_eos": True, **params}
    ids = torch.tensor(tokens, dtype=torch.int32)
    return backend.UserMsg(uid, ids, SamplingParams(**wanted))


def run(engine: Engine, *steps: list[Any]) -> list[Any]:
    """Give an engine messages step by step, and then let it work until it is done."""
    replies: list[Any] = []
    for messages in steps:
        replies += engine.step(messages)
    while engine.busy:
        replies += engine.step([])
    return replies


def tokens_of(replies: list[Any], uid: int) -> list[int]:
    return [
        reply.next_token
        for reply in replies
        if isinstance(reply, DetokenizeMsg) and reply.uid == uid
    ]

"""Splits the model over ranks, by PyTorch's tensor parallelism.

What divides by the number of ranks is split; what does not, every rank computes whole:

- The feed-forward networks: gate and up by columns, down by rows, with one sum over the ranks
  behind it.
- The head: by columns, that is by parts of the vocabulary, which are then put together.
- Attention, by heads, where both kinds of head divide. The 9 heads and 3 key and value heads of
  SmolLM2-135M do so for 3 ranks and not for 2; padding them to 12 and 4 would cost more
  than it saves. Attention has a fifth of the model's multiplications.

Every rank ends a pass with the same logits.
"""

from __future__ import annotations

from typing import Any

import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    RowwiseParallel,
    parallelize_module,
)

from .llama import Llama, LlamaConfig


def splits_heads(config: LlamaConfig, ranks: int) -> bool:
    """Whether attention is split: both kinds of head divide by the number of ranks."""
    return (
        config.num_attention_heads % ranks == 0
        and config.num_key_value_heads % ranks == 0
    )


def kv_heads(config: LlamaConfig, ranks: int) -> int:
    """Key and value heads that each rank computes."""
    heads = config.num_key_value_heads
    return heads // ranks if splits_heads(config, ranks) else heads


def split(llama: Llama, group: dist.ProcessGroup, device_type: str) -> None:
    """Keep this rank's part of the weights; all ranks of the group must have loaded the same.

    Raises:
        ValueError: the feed-forward networks or the vocabulary do not divide.
    """
    ranks = group.size()
    config = llama.config
    config.check_ranks(ranks)
    mesh = DeviceMesh.from_group(group, device_type)
    # Each rank has read the file, so none needs another's weights.
    for layer in llama.model.layers:
        parallelize_module(layer, mesh, _layer_plan(config, ranks), src_data_rank=None)
    head: dict[str, ParallelStyle] = {
        "lm_head": ColwiseParallel(use_local_output=False)
    }
    parallelize_module(llama, mesh, head, src_data_rank=None)
    llama.lm_head.register_forward_hook(_gather)


def _gather(module: nn.Module, args: Any, logits: DTensor) -> Tensor:
    """Put the parts of the vocabulary together, and wait until they are there.

    The ready-made layout Replicate() waits when the logits are used. Only rank 0 uses them, and the
    others would keep those of every pass for ever.
    """
    return logits.full_tensor()


def _layer_plan(config: LlamaConfig, ranks: int) -> dict[str, ParallelStyle]:
    plan: dict[str, ParallelStyle] = {
        "mlp.gate_proj": ColwiseParallel(),
        "mlp.up_proj": ColwiseParallel(),
        "mlp.down_proj": RowwiseParallel(),
    }
    if splits_heads(config, ranks):
        for name in ("q_proj", "k_proj", "v_proj"):
            plan[f"self_attn.{name}"] = ColwiseParallel()
        plan["self_attn.o_proj"] = RowwiseParallel()
    return plan

"""Keys and values of all requests, and what a forward pass reads of them.

The cache is one pool of slots, each for one token in every layer. A request holds any slots, in the
order of its tokens; nothing is ever moved, and no room is lost between requests.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


class KVCache:
    """A pool of slots for keys and values.

    Args:
        slots: tokens that it holds.
        layers, kv_heads, head_dim: of the model; kv_heads are those of this rank.

    Attributes:
        keys, values: (layers, slots, kv_heads, head_dim).
        free: slots that nobody holds.
    """

    def __init__(
        self,
        slots: int,
        layers: int,
        kv_heads: int,
        head_dim: int,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        shape = (layers, slots, kv_heads, head_dim)
        self.keys = torch.zeros(shape, device=device, dtype=dtype)
        self.values = torch.zeros(shape, device=device, dtype=dtype)
        self.total = slots
        self.free = slots
        self._stack = torch.arange(slots).flip(0)

    def take(self, count: int) -> Tensor:
        """Return `count` free slots, int64; there must be so many."""
        if count > self.free:
            raise ValueError(f"{count} slots wanted, {self.free} are free")
        self.free -= count
        return self._stack[self.free : self.free + count].clone()

    def give_back(self, slots: Tensor) -> None:
        """Free slots; what they hold is lost."""
        self._stack[self.free : self.free + len(slots)] = slots
        self.free += len(slots)

    def write(self, layer: int, slots: Tensor, keys: Tensor, values: Tensor) -> None:
        """Store keys and values (tokens, kv_heads, head_dim) in slots (tokens,)."""
        self.keys[layer].index_copy_(0, slots, keys)
        self.values[layer].index_copy_(0, slots, values)

    def read(self, layer: int, slots: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values of slots, of their shape and (kv_heads, head_dim) behind it."""
        return self.keys[layer][slots], self.values[layer][slots]


@dataclass(frozen=True)
class Decoded:
    """The requests that advance by one token; theirs are the first tokens of the batch.

    Attributes:
        context: (requests, longest), int64: the slots of each request's tokens, padded.
        mask: (requests, 1, 1, longest), bool: False where it is padding.
    """

    context: Tensor
    mask: Tensor

    def read(self, cache: KVCache, layer: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return keys, values and mask; keys and values are (requests, longest, kv_heads, dim)."""
        return *cache.read(layer, self.context), self.mask


@dataclass(frozen=True)
class Piece:
    """A piece of one prompt.

    Attributes:
        start, stop: its tokens in the batch.
        context: (length,), int64: the slots of the request's tokens up to the piece's last.
        mask: (stop - start, length), bool: which of them each token of the piece sees.
    """

    start: int
    stop: int
    context: Tensor
    mask: Tensor


@dataclass(frozen=True)
class Batch:
    """What one forward pass advances.

    Attributes:
        tokens: (tokens,), int64: token ids; first those of decoded requests, then the pieces.
        positions: (tokens,), int64: each one's place in its request.
        slots: (tokens,), int64: where its keys and values go.
        last: (requests,), int64: the last token of each request.
        decoded: the decoded requests; None if there are none.
        pieces: the pieces of prompts.
    """

    tokens: Tensor
    positions: Tensor
    slots: Tensor
    last: Tensor
    decoded: Decoded | None
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Advance:
    """One request's part in a forward pass.

    Attributes:
        tokens: ids of the tokens to compute.
        start: the place of the first one in its request.
        slots: slots of all of the request's tokens up to the last one here.
    """

    tokens: list[int]
    start: int
    slots: Tensor


def batch_of(parts: list[Advance], device: torch.device) -> Batch:
    """Put requests' parts together; those of one token must come before all longer ones."""
    decoded = [part for part in parts if len(part.tokens) == 1]
    pieces = []
    stop = len(decoded)
    for part in parts[len(decoded) :]:
        start, stop = stop, stop + len(part.tokens)
        pieces.append(_piece(part, start, stop, device))
    ends = torch.tensor([len(part.tokens) for part in parts]).cumsum(0)
    return Batch(
        tokens=torch.tensor([token for part in parts for token in part.tokens]).to(
            device
        ),
        positions=torch.cat(
            [torch.arange(part.start, len(part.slots)) for part in parts]
        ).to(device),
        slots=torch.cat([part.slots[part.start :] for part in parts]).to(device),
        last=(ends - 1).to(device),
        decoded=_decoded(decoded, device) if decoded else None,
        pieces=tuple(pieces),
    )


def _piece(part: Advance, start: int, stop: int, device: torch.device) -> Piece:
    length = len(part.slots)
    seen = torch.arange(length) <= torch.arange(part.start, length).unsqueeze(1)
    return Piece(start, stop, part.slots.to(device), seen.to(device))


def _decoded(parts: list[Advance], device: torch.device) -> Decoded:
    context = torch.nn.utils.rnn.pad_sequence(
        [part.slots for part in parts], batch_first=True
    )
    lengths = torch.tensor([len(part.slots) for part in parts])
    seen = torch.arange(context.shape[1]) < lengths.unsqueeze(1)
    # Padding reads a slot of the same request, so that no other's values can leak into it: masked
    # out is 0 times the value, which is not 0 where that is infinite.
    context = torch.where(seen, context, context[:, :1])
    return Decoded(context.to(device), seen[:, None, None].to(device))

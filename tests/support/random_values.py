"""Random values of a built schema from a seed: faster than hypothesis, which chooses and shrinks."""

from __future__ import annotations

import copy
import math
import random
from dataclasses import dataclass, field
from typing import Any

import torch
from building import Built
from msgen.codegen.schema import model
from values import make_tensor

_TEXTS = ["", "a", "it's", "ünï", "12345678901234567890"]
_PLAIN = [None, True, 0, -5, 2**63, 0.5, "x", [1, None, [2.5]], {"k": {"a": [False]}}]
_DEEP = 2
"""Records inside one another from which on lists are empty and nullables None."""


@dataclass
class RandomValues:
    """Makes values of the records of a built schema."""

    built: Built
    random: random.Random
    _depth: int = 0
    _sizes: dict[str, int] = field(default_factory=dict)

    def record(self, record: model.Record) -> Any:
        """Make a struct or message; its dimension symbols have sizes of their own."""
        outer, self._sizes = self._sizes, {}
        self._depth += 1
        values = {each.name: self.value(each.type) for each in record.live_fields}
        self._depth -= 1
        self._sizes = outer
        return getattr(self.built.module(record.group), record.name)(**values)

    def value(self, type_: model.Type) -> Any:
        choose = self.random
        if isinstance(type_, model.BoolType):
            return choose.random() < 0.5
        if isinstance(type_, model.IntType):
            low, high = model.INT_RANGES[type_.width]
            near = max(low, min(high, choose.randint(-200, 70_000)))
            return choose.choice([low, high, near, near])
        if isinstance(type_, model.FloatType):
            largest = 3e38 if type_.bits == 32 else 1e300
            exact = float(torch.tensor(largest, dtype=torch.float32))
            odd = exact if type_.bits == 32 else largest
            return choose.choice([0.0, -1.5, odd, 1.0 if type_.finite else math.inf])
        if isinstance(type_, model.StrType):
            return choose.choice(_TEXTS)[: type_.max_len]
        if isinstance(type_, model.BytesType):
            return choose.randbytes(choose.choice([0, 3, 12]))[: type_.max_len]
        if isinstance(type_, model.NullableType):
            nothing = self._depth > _DEEP or choose.random() < 0.4
            return None if nothing else self.value(type_.item)
        if isinstance(type_, model.UnionType):
            return self.value(choose.choice(type_.options))
        if isinstance(type_, model.ListType):
            return [self.value(type_.item) for _ in range(self._length(type_.max_len))]
        if isinstance(type_, model.TupleType):
            return tuple(self.value(item) for item in type_.items)
        if isinstance(type_, model.DictType):
            count = self._length(type_.max_len)
            return {
                self.value(type_.key): self.value(type_.value) for _ in range(count)
            }
        if isinstance(type_, model.EnumType):
            member = choose.choice(self.built.schema.enum(type_).members)
            return getattr(self.built.module(type_.group), type_.name)(member.number)
        if isinstance(type_, (model.StructType, model.MessageType)):
            return self.record(self.built.schema.record(type_))
        if isinstance(type_, model.TensorType):
            return self._tensor(type_)
        return copy.deepcopy(choose.choice(_PLAIN))

    def _length(self, limit: int | None) -> int:
        if self._depth > _DEEP:
            return 0
        if limit is not None and self.random.random() < 0.3:
            return limit
        return self.random.randint(0, 3 if limit is None else min(limit, 3))

    def _tensor(self, type_: model.TensorType) -> torch.Tensor:
        dims = type_.dims
        if dims is None:
            dims = ("_",) * self.random.randint(0, 3)
        shape = [self._size(dim) for dim in dims]
        if type_.max_len is not None and math.prod(shape) > type_.max_len:
            return self._tensor(type_)  # sizes of fixed dims and symbols are small
        dtype = type_.dtype
        if dtype == "any":
            dtype = self.random.choice(model.DTYPES)
        return make_tensor(shape, dtype, self.random.randint(0, 1))

    def _size(self, dim: int | str) -> int:
        if isinstance(dim, int):
            return dim
        if dim == "_":
            return self.random.randint(0, 3)
        return self._sizes.setdefault(dim, self.random.randint(0, 2))

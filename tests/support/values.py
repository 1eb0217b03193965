"""Random values of a schema's types, and what their slots must be, both from the model alone."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from typing import Any

import torch
from building import Built
from hypothesis import strategies as st
from msgen.codegen.schema import model

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
# Ready-made strategies are much cheaper to draw from than new ones.
_INTS = {
    width: st.one_of(st.integers(low, high), st.sampled_from([low, high]))
    for width, (low, high) in model.INT_RANGES.items()
}
_FLOATS = {
    64: st.floats(allow_nan=False),
    32: st.floats(allow_nan=False, width=32),
}
_LEAVES: dict[type, st.SearchStrategy[Any]] = {
    model.BoolType: st.booleans(),
    model.AnyType: st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**64 - 1)
        | st.floats(allow_nan=False)
        | TEXT
        | st.binary(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3)
        ),
        max_leaves=5,
    ),
}


@dataclass
class ValueMaker:
    """Draws values for the records of a built schema."""

    data: st.DataObject
    built: Built
    depth: int = 0
    _sizes: dict[str, int] = field(default_factory=dict)

    def draw(self, strategy: st.SearchStrategy[Any]) -> Any:
        return self.data.draw(strategy)

    def message(self, group: str) -> Any:
        """Draw any message of a group."""
        message = self.draw(
            st.sampled_from(self.built.schema.groups[group].live_messages)
        )
        return self.record(message)

    def record(self, record: model.Record) -> Any:
        """Draw a struct or message; its dimension symbols have sizes of their own."""
        outer, self._sizes = self._sizes, {}
        self.depth += 1
        values = {}
        for each in record.live_fields:
            values[each.name] = self.value(each.type)
        self.depth -= 1
        self._sizes = outer
        return getattr(self.built.module(record.group), record.name)(**values)

    def value(self, type_: model.Type) -> Any:
        if isinstance(type_, model.IntType):
            return self.draw(_INTS[type_.width])
        if isinstance(type_, model.FloatType):
            value = self.draw(_FLOATS[type_.bits])
            return 1.5 if type_.finite and math.isinf(value) else value
        if isinstance(type_, model.StrType):
            return self.draw(TEXT)[: type_.max_len]
        if isinstance(type_, model.BytesType):
            return self.draw(st.binary(max_size=20))[: type_.max_len]
        if isinstance(type_, model.NullableType):
            nothing = self.depth > 2 or self.draw(st.booleans())
            return None if nothing else self.value(type_.item)
        if isinstance(type_, model.UnionType):
            return self.value(self.draw(st.sampled_from(type_.options)))
        if isinstance(type_, model.ListType):
            return [self.value(type_.item) for _ in range(self.length(type_.max_len))]
        if isinstance(type_, model.TupleType):
            return tuple(self.value(item) for item in type_.items)
        if isinstance(type_, model.DictType):
            count = self.length(type_.max_len)
            return {
                self.value(type_.key): self.value(type_.value) for _ in range(count)
            }
        if isinstance(type_, model.EnumType):
            member = self.draw(st.sampled_from(self.built.schema.enum(type_).members))
            cls = getattr(self.built.module(type_.group), type_.name)
            return cls(member.number)
        if isinstance(type_, (model.StructType, model.MessageType)):
            return self.record(self.built.schema.record(type_))
        if isinstance(type_, model.TensorType):
            return self.tensor(type_)
        return self.draw(_LEAVES[type(type_)])

    def length(self, limit: int | None) -> int:
        longest = 0 if self.depth > 2 else 3
        return int(
            self.draw(st.integers(0, min(longest, 3 if limit is None else limit)))
        )

    def tensor(self, type_: model.TensorType) -> torch.Tensor:
        dims = type_.dims
        if dims is None:
            dims = ("_",) * self.draw(st.integers(0, 3))
        shape = [self._size(dim) for dim in dims]
        while type_.max_len is not None and math.prod(shape) > type_.max_len:
            return self.tensor(type_)  # sizes of fixed dims and symbols are small
        dtype = type_.dtype
        if dtype == "any":
            dtype = self.draw(st.sampled_from(model.DTYPES))
        return make_tensor(shape, dtype, self.draw(st.integers(0, 3)))

    def _size(self, dim: int | str) -> int:
        if isinstance(dim, int):
            return dim
        size = int(self.draw(st.integers(0, 2)))
        return size if dim == "_" else self._sizes.setdefault(dim, size)


def make_tensor(shape: list[int], dtype: str, start: int) -> torch.Tensor:
    """Make a tensor of any dtype from small numbers, which every dtype holds exactly."""
    count = math.prod(shape)
    numbers = torch.tensor(
        [(start + index) % 4 for index in range(count)], dtype=torch.float32
    )
    kind = getattr(torch, dtype)
    if dtype == "float8_e8m0fnu":  # powers of two only
        numbers = torch.exp2(numbers)
    tensor = (numbers > 1) if dtype == "bool" else numbers.to(kind)
    return tensor.reshape(shape)


def slots_of(built: Built, record: model.Record, value: Any) -> list[Any]:
    """Return the slots of a value as the wire format defines them, by the model alone."""
    slots: list[Any] = [
        None if each.removed else slot_of(built, each.type, getattr(value, each.name))
        for each in record.fields
    ]
    return [record.tag, *slots] if isinstance(record, model.Message) else slots


def slot_of(built: Built, type_: model.Type, value: Any) -> Any:
    schema = built.schema
    if isinstance(type_, model.NullableType):
        return None if value is None else slot_of(built, type_.item, value)
    if isinstance(type_, model.UnionType):
        option = next(each for each in type_.options if _is_of(built, each, value))
        return slot_of(built, option, value)
    if isinstance(type_, model.ListType):
        return [slot_of(built, type_.item, item) for item in value]
    if isinstance(type_, model.TupleType):
        return [slot_of(built, *pair) for pair in zip(type_.items, value)]
    if isinstance(type_, model.DictType):
        return {
            slot_of(built, type_.key, key): slot_of(built, type_.value, item)
            for key, item in value.items()
        }
    if isinstance(type_, model.EnumType):
        return int(value)
    if isinstance(type_, (model.StructType, model.MessageType)):
        return slots_of(built, schema.record(type_), value)
    if isinstance(type_, model.TensorType):
        payload = tensor_bytes(value)
        if type_.is_vector:
            return payload
        number = (
            [model.DTYPES.index(str(value.dtype)[6:])] if type_.dtype == "any" else []
        )
        return [*number, *value.shape, payload]
    return value


def tensor_bytes(tensor: torch.Tensor) -> bytes:
    """The bytes of a tensor, element by element: slow, and independent of the runtime."""
    flat = tensor.reshape(-1)
    if tensor.dtype.is_complex:
        flat = torch.view_as_real(flat).reshape(-1)
    if flat.dtype in (torch.float64, torch.float32, torch.float16):
        code = {torch.float64: "d", torch.float32: "f", torch.float16: "e"}[flat.dtype]
        return b"".join(struct.pack(f"<{code}", item) for item in flat.tolist())
    if flat.dtype == torch.bfloat16:
        return b"".join(struct.pack("<f", item)[2:] for item in flat.tolist())
    if flat.dtype.is_floating_point:
        return bytes(flat.view(torch.uint8).tolist())
    size = flat.dtype.itemsize
    signed = flat.dtype.is_signed
    return b"".join(
        int(item).to_bytes(size, "little", signed=signed) for item in flat.tolist()
    )


def _is_of(built: Built, type_: model.Type, value: Any) -> bool:
    if isinstance(type_, (model.EnumType, model.StructType, model.MessageType)):
        return type(value) is getattr(built.module(type_.group), type_.name)
    if isinstance(type_, model.TensorType):
        return isinstance(value, torch.Tensor) and (
            not type_.is_vector
            or (value.dim() == 1 and str(value.dtype) == f"torch.{type_.dtype}")
        )
    classes: dict[type, type] = {
        model.BoolType: bool,
        model.IntType: int,
        model.FloatType: float,
        model.StrType: str,
        model.BytesType: bytes,
        model.ListType: list,
        model.TupleType: tuple,
        model.DictType: dict,
    }
    return type(value) is classes[type(type_)]

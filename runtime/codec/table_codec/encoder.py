"""From a message to the slots of its array, by the description table."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from msgen.runtime.codec import shapes, table, tensors, wire
from msgen.runtime.codec.dtypes import DTYPES, NUMBER_OF
from msgen.runtime.codec.frames import FrameWriter, Unfit
from msgen.runtime.errors import EncodeError

from .walker import At, Walker, first_line, is_integer


@dataclass
class TableEncoder(Walker):
    """Encodes one message.

    Attributes:
        frames: takes the payloads that get a frame of their own; None keeps all in the array.
    """

    error = EncodeError
    hint = "; does it contain itself?"
    frames: FrameWriter | None

    def message(self, value: Any, record: table.Record) -> list[Any]:
        """Return `[tag, slot, ...]`.

        Raises:
            EncodeError: with the path of the first value that does not fit.
        """
        return [record.tag, *self._slots(record, value, At(record.name))]

    def _slots(self, record: table.Record, value: Any, at: At) -> list[Any]:
        inside = self.enter(record, at)
        slots: list[Any] = []
        for field in record.fields:
            if field.removed:
                slots.append(None)
                continue
            where = inside.field(field.name)
            try:
                item = getattr(value, field.name)
            except AttributeError:
                raise self.fault(
                    where, f"expected {field.type}, but the attribute is not set"
                ) from None
            except Exception as error:
                raise self.fault(where, f"reading it failed: {error!r}") from error
            slots.append(self.value(field.type, item, where))
        conflict = shapes.find_conflict(value, record)
        if conflict is not None:
            raise self.fault(at, conflict)
        return slots

    def _float(self, type_: table.Float, value: Any, at: At) -> Any:
        if not is_integer(value):
            self.take((float, np.floating), type_, value, at)
        try:
            number = float(value)
        except OverflowError:
            raise self.unexpected(type_, value, at, ", too large for a float") from None
        self.check_float(type_, number, value, at)
        return wire.Single(number) if type_.bits == 32 else number

    def _bytes(self, type_: table.Bytes, value: Any, at: At) -> Any:
        data = bytes(self.take((bytes, bytearray, memoryview), type_, value, at))
        self.check_length(type_.max_len, data, at)
        return wire.encode_bytes(data, None if at.inline else self.frames)

    def _enum(self, type_: table.Enum, value: Any, at: At) -> int:
        return int(self.take(type_.cls, type_, value, at))

    def _tuple(self, type_: table.Tuple, value: Any, at: At) -> list[Any]:
        items = tuple.__getitem__(self.take(tuple, type_, value, at), slice(None))
        if len(items) != len(type_.items):
            raise self.unexpected(type_, value, at)
        return [
            self.value(item_type, item, at.item(index))
            for index, (item_type, item) in enumerate(zip(type_.items, items))
        ]

    def _union(self, type_: table.Union, value: Any, at: At) -> Any:
        option = next((each for each in type_.options if _takes(each, value)), None)
        if option is None and is_integer(value):
            floats = (each for each in type_.options if isinstance(each, table.Float))
            option = next(floats, None)
        if option is None:
            raise self.unexpected(type_, value, at)
        return self.value(option, value, at.option())

    def _struct(
        self, type_: table.Struct | table.Message, value: Any, at: At
    ) -> list[Any]:
        self.take(type_.cls, type_, value, at)
        record = self.records[type_.cls]
        slots = self._slots(record, value, at)
        return slots if record.tag is None else [record.tag, *slots]

    _message = _struct

    def _tensor(self, type_: table.Tensor, value: Any, at: At) -> Any:
        if not isinstance(value, torch.Tensor):
            raise self.unexpected(type_, value, at)
        fault = _fault_of_tensor(type_, value)
        if fault is None:
            try:
                frames = None if at.inline else self.frames
                return tensors.encode_slot(type_, value, frames)
            except Unfit:
                fault = "its storage holds less memory than its shape takes"
            except Exception as error:
                raise self.fault(
                    at, f"the tensor cannot be read: {first_line(error)}"
                ) from error
        raise self.unexpected(type_, value, at, f" ({fault})")


def _takes(option: table.Type, value: Any) -> bool:
    """Say whether a value is of the class of an alternative."""
    if isinstance(option, table.Int):
        return is_integer(value) and not isinstance(value, enum.Enum)
    if isinstance(option, (table.Enum, table.Struct, table.Message)):
        return isinstance(value, option.cls)
    if isinstance(option, table.Tensor):
        dtype = None if option.dtype == "any" else DTYPES.get(option.dtype)
        rank = None if option.dims is None else len(option.dims)
        return tensors.is_tensor(value, dtype, rank)
    classes: dict[type, type | tuple[type, ...]] = {
        table.Bool: (bool, np.bool_),
        table.Float: (float, np.floating),
        table.Str: str,
        table.Bytes: (bytes, bytearray, memoryview),
        table.List: list,
        table.Tuple: tuple,
        table.Dict: dict,
    }
    return isinstance(value, classes[type(option)])


def _fault_of_tensor(type_: table.Tensor, value: torch.Tensor) -> str | None:
    """Say why a tensor cannot be encoded, None where nothing is wrong."""
    if type_.dtype == "any" and value.dtype not in NUMBER_OF:
        return f"dtype {value.dtype} has no place on the wire"
    if type_.dtype != "any" and value.dtype is not DTYPES.get(type_.dtype):
        return "wrong dtype"
    if type_.shape is not None and value.dim() != len(type_.shape):
        return f"wrong rank, {value.dim()}"
    for axis, size in enumerate(type_.shape or ()):
        if size is not None and value.shape[axis] != size:
            return f"dimension {axis} is {value.shape[axis]}"
    if type_.max_len is not None and value.numel() > type_.max_len:
        return f"{value.numel()} elements, at most {type_.max_len} are allowed"
    if value.layout is not torch.strided:
        return f"layout {value.layout}; call to_dense() first"
    if value.is_meta:
        return "a meta tensor, which has no data"
    return None

"""The table-driven encoder: converts what generated encoders refuse, or says what is wrong."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from msgen.runtime.codec import shapes, table, tensors, wire
from msgen.runtime.codec.frames import FrameWriter, Unfit
from msgen.runtime.codec.show import show
from msgen.runtime.errors import EncodeError

from .common import (
    PLAIN_TEXT,
    At,
    expected,
    first_line,
    float_fault,
    length_fault,
    tensor_shape,
)


def find_record(records: table.Records, value: Any) -> table.Record | None:
    """Return the record of a value's class, or of the nearest class it derives from."""
    return next((records[cls] for cls in type(value).__mro__ if cls in records), None)


@dataclass
class ReferenceEncoder:
    """Encodes one message.

    Attributes:
        frames: takes the payloads that get a frame of their own; None keeps all in the array.
    """

    records: table.Records
    frames: FrameWriter | None

    def message(self, value: Any, record: table.Record) -> list[Any]:
        """Return `[tag, slot, ...]`.

        Raises:
            EncodeError: with the path of the first value that does not fit.
        """
        return [record.tag, *self._slots(record, value, At(record.name))]

    def _slots(self, record: table.Record, value: Any, at: At) -> list[Any]:
        inside = at.inside(record, EncodeError)
        slots: list[Any] = []
        for field in record.fields:
            if field.removed:
                slots.append(None)
                continue
            where = inside.field(field.name)
            try:
                item = getattr(value, field.name)
            except AttributeError:
                raise EncodeError(
                    where.path, f"expected {field.type}, but the attribute is not set"
                ) from None
            except Exception as error:
                raise EncodeError(
                    where.path, f"reading it failed: {error!r}"
                ) from error
            slots.append(self._value(field.type, item, where))
        conflict = shapes.find_conflict(value, record)
        if conflict is not None:
            raise EncodeError(at.path, conflict)
        return slots

    def _value(self, type_: table.Type, value: Any, at: At) -> Any:
        return _METHODS[type(type_)](self, type_, value, at)

    def _bool(self, type_: table.Bool, value: Any, at: At) -> bool:
        if not isinstance(value, (bool, np.bool_)):
            raise _unexpected(type_, value, at)
        return bool(value)

    def _int(self, type_: table.Int, value: Any, at: At) -> int:
        if not _is_integer(value):
            raise _unexpected(type_, value, at)
        low, high = type_.limits
        if not low <= int(value) <= high:
            raise _unexpected(type_, value, at, f", out of range {low} to {high}")
        return int(value)

    def _float(self, type_: table.Float, value: Any, at: At) -> Any:
        if not _is_integer(value) and not isinstance(value, (float, np.floating)):
            raise _unexpected(type_, value, at)
        try:
            number = float(value)
        except OverflowError:
            raise _unexpected(type_, value, at, ", too large for a float") from None
        fault = float_fault(type_, number)
        if fault is not None:
            raise _unexpected(type_, value, at, fault)
        return wire.Single(number) if type_.bits == 32 else number

    def _str(self, type_: table.Str, value: Any, at: At) -> str:
        if not isinstance(value, str):
            raise _unexpected(type_, value, at)
        text = str.__str__(value)
        try:
            text.encode()
        except UnicodeEncodeError as error:
            detail = f", which has a lone surrogate at {error.start}"
            raise _unexpected(type_, value, at, detail) from None
        _check_length(type_.max_len, text, at)
        return text

    def _bytes(self, type_: table.Bytes, value: Any, at: At) -> Any:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise _unexpected(type_, value, at)
        data = bytes(value)
        _check_length(type_.max_len, data, at)
        return wire.encode_bytes(data, None if at.inline else self.frames)

    def _plain(self, type_: table.Plain, value: Any, at: At) -> Any:
        return self._plain_at_level(value, at, wire.PLAIN_DEPTH)

    def _plain_at_level(self, value: Any, at: At, level: int) -> Any:
        if isinstance(value, (list, dict)):
            if level == 0:
                raise EncodeError(
                    at.path,
                    f"nested more than {wire.PLAIN_DEPTH} levels deep; does it contain itself?",
                )
            if isinstance(value, list):
                return [
                    self._plain_at_level(item, at.item(index), level - 1)
                    for index, item in enumerate(value)
                ]
            for key in value:
                if not isinstance(key, str):
                    raise EncodeError(at.path, f"expected str keys, got {show(key)}")
            return {
                self._str(table.Str(), key, at.key()): self._plain_at_level(
                    item, at.item(key), level - 1
                )
                for key, item in value.items()
            }
        return self._plain_leaf(value, at)

    def _plain_leaf(self, value: Any, at: At) -> Any:
        if value is None:
            return None
        if isinstance(value, (bool, np.bool_)):
            return bool(value)
        if _is_integer(value):
            if not wire.I64_MIN <= int(value) <= wire.U64_MAX:
                raise EncodeError(
                    at.path, f"expected an integer of 64 bits, got {show(value)}"
                )
            return int(value)
        if isinstance(value, (float, np.floating)):
            return float(value)
        if isinstance(value, str):
            return self._str(table.Str(), value, at)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        raise EncodeError(at.path, f"expected {PLAIN_TEXT}, got {show(value)}")

    def _enum(self, type_: table.Enum, value: Any, at: At) -> int:
        if not isinstance(value, type_.cls):
            raise _unexpected(type_, value, at)
        return int(value)

    def _list(self, type_: table.List, value: Any, at: At) -> list[Any]:
        if not isinstance(value, list):
            raise _unexpected(type_, value, at)
        value = list.copy(value)  # what a subclass holds, and not what it says
        _check_length(type_.max_len, value, at)
        return [
            self._value(type_.item, item, at.item(index))
            for index, item in enumerate(value)
        ]

    def _tuple(self, type_: table.Tuple, value: Any, at: At) -> list[Any]:
        if not isinstance(value, tuple) or tuple.__len__(value) != len(type_.items):
            raise _unexpected(type_, value, at)
        value = tuple.__getitem__(value, slice(None))
        return [
            self._value(item_type, item, at.item(index))
            for index, (item_type, item) in enumerate(zip(type_.items, value))
        ]

    def _dict(self, type_: table.Dict, value: Any, at: At) -> dict[Any, Any]:
        if not isinstance(value, dict):
            raise _unexpected(type_, value, at)
        value = dict.copy(value)
        _check_length(type_.max_len, value, at)
        return {
            self._value(type_.key, key, at.key()): self._value(
                type_.value, item, at.item(key)
            )
            for key, item in value.items()
        }

    def _nullable(self, type_: table.Nullable, value: Any, at: At) -> Any:
        return None if value is None else self._value(type_.item, value, at)

    def _union(self, type_: table.Union, value: Any, at: At) -> Any:
        option = next((each for each in type_.options if _takes(each, value)), None)
        if option is None and _is_integer(value):
            floats = (each for each in type_.options if isinstance(each, table.Float))
            option = next(floats, None)
        if option is None:
            raise _unexpected(type_, value, at)
        return self._value(option, value, at.inlined())

    def _record(
        self, type_: table.Struct | table.Message, value: Any, at: At
    ) -> list[Any]:
        if not isinstance(value, type_.cls):
            raise _unexpected(type_, value, at)
        record = self.records[type_.cls]
        slots = self._slots(record, value, at)
        return slots if record.tag is None else [record.tag, *slots]

    def _tensor(self, type_: table.Tensor, value: Any, at: At) -> Any:
        wrong = tensors.explain(value, type_.dtype, type_.dims, type_.max_len)
        if wrong is not None:
            detail = f" ({wrong})" if isinstance(value, torch.Tensor) else ""
            raise _unexpected(type_, value, at, detail)
        frames = None if at.inline else self.frames
        shape = tensor_shape(type_)
        try:
            if type_.dtype == "any":
                return tensors.encode_any_tensor(value, shape, frames)
            dtype = tensors.DTYPES[type_.dtype]
            return tensors.encode_tensor(value, dtype, shape, frames)
        except Unfit:
            detail = " (its storage holds less memory than its shape takes)"
            raise _unexpected(type_, value, at, detail) from None
        except Exception as error:
            raise EncodeError(
                at.path, f"the tensor cannot be read: {first_line(error)}"
            ) from error


def _unexpected(type_: table.Type, value: Any, at: At, detail: str = "") -> EncodeError:
    return EncodeError(at.path, expected(type_, value, detail))


def _check_length(limit: int | None, value: Any, at: At) -> None:
    fault = length_fault(limit, len(value))
    if fault is not None:
        raise EncodeError(at.path, fault)


def _is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(
        value, (bool, np.bool_)
    )


def _takes(option: table.Type, value: Any) -> bool:
    """Say whether a value is of the class of an alternative."""
    if isinstance(option, table.Bool):
        return isinstance(value, (bool, np.bool_))
    if isinstance(option, table.Int):
        return _is_integer(value) and not isinstance(value, enum.Enum)
    if isinstance(option, (table.Enum, table.Struct, table.Message)):
        return isinstance(value, option.cls)
    if isinstance(option, table.Tensor):
        dtype = None if option.dtype == "any" else tensors.DTYPES.get(option.dtype)
        rank = None if option.dims is None else len(option.dims)
        return tensors.is_tensor(value, dtype, rank)
    classes: dict[type, type | tuple[type, ...]] = {
        table.Float: (float, np.floating),
        table.Str: str,
        table.Bytes: (bytes, bytearray, memoryview),
        table.List: list,
        table.Tuple: tuple,
        table.Dict: dict,
    }
    return isinstance(value, classes[type(option)])


_METHODS: dict[type, Callable[..., Any]] = {
    table.Bool: ReferenceEncoder._bool,
    table.Int: ReferenceEncoder._int,
    table.Float: ReferenceEncoder._float,
    table.Str: ReferenceEncoder._str,
    table.Bytes: ReferenceEncoder._bytes,
    table.Plain: ReferenceEncoder._plain,
    table.Enum: ReferenceEncoder._enum,
    table.List: ReferenceEncoder._list,
    table.Tuple: ReferenceEncoder._tuple,
    table.Dict: ReferenceEncoder._dict,
    table.Nullable: ReferenceEncoder._nullable,
    table.Union: ReferenceEncoder._union,
    table.Struct: ReferenceEncoder._record,
    table.Message: ReferenceEncoder._record,
    table.Tensor: ReferenceEncoder._tensor,
}

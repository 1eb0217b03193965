"""The table-driven decoder: makes the same objects as generated decoders, or says what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from msgen.runtime.codec import shapes, table, tensors, wire
from msgen.runtime.codec.frames import FrameReader, Unfit
from msgen.runtime.codec.show import listed, show
from msgen.runtime.errors import DecodeError

from .common import (
    PLAIN_TEXT,
    At,
    expected,
    first_line,
    float_fault,
    length_fault,
    takes_nil,
    tensor_shape,
)

T = TypeVar("T")


@dataclass
class ReferenceDecoder:
    """Decodes one message from what msgpack unpacked.

    Attributes:
        frames: the payload frames; None where all payloads stand in the array.
    """

    records: table.Records
    frames: FrameReader | None

    def message(self, cls: type, slots: list[Any]) -> Any:
        """Return the message of `[tag, slot, ...]`.

        Raises:
            DecodeError: with the path of the first slot that does not fit.
        """
        return self._record(cls, slots, At(self.records[cls].name))

    def _record(self, cls: type, slots: Any, at: At) -> Any:
        record = self.records[cls]
        inside = at.inside(record, DecodeError)
        if type(slots) is not list:
            raise DecodeError(
                at.path, f"expected an array of {record.name}, got {show(slots)}"
            )
        if record.tag is not None:
            slots = slots[1:]
        values: dict[str, Any] = {}
        for index, field in enumerate(record.fields):
            if index < len(slots):
                if field.removed:
                    continue
                values[field.name] = self._slot(field, slots[index], inside)
            elif field.default is not None and field.since > 1:
                if not field.removed:
                    values[field.name] = field.default()
            else:
                least = sum(each.since == 1 for each in record.fields)
                raise DecodeError(
                    at.path,
                    f"expected at least {least} slots, got {len(slots)}; "
                    f"'{field.name}' is missing",
                )
        value = cls(**values)
        conflict = shapes.find_conflict(value, record)
        if conflict is not None:
            raise DecodeError(at.path, conflict)
        return value

    def _slot(self, field: table.Field, slot: Any, at: At) -> Any:
        if slot is None and field.default is not None and not takes_nil(field.type):
            return field.default()
        return self._value(field.type, slot, at.field(field.name))

    def _value(self, type_: table.Type, slot: Any, at: At) -> Any:
        return _METHODS[type(type_)](self, type_, slot, at)

    def _bool(self, type_: table.Bool, slot: Any, at: At) -> bool:
        return _of_class(bool, type_, slot, at)

    def _int(self, type_: table.Int, slot: Any, at: At) -> int:
        number = _of_class(int, type_, slot, at)
        low, high = type_.limits
        if not low <= number <= high:
            raise _unexpected(type_, slot, at, f", out of range {low} to {high}")
        return number

    def _float(self, type_: table.Float, slot: Any, at: At) -> float:
        number = _of_class(float, type_, slot, at)
        fault = float_fault(type_, number)
        if fault is not None:
            raise _unexpected(type_, slot, at, fault)
        return number

    def _str(self, type_: table.Str, slot: Any, at: At) -> str:
        text = _of_class(str, type_, slot, at)
        _check_length(type_.max_len, text, at)
        return text

    def _bytes(self, type_: table.Bytes, slot: Any, at: At) -> bytes:
        try:
            data = wire.decode_bytes(slot, None if at.inline else self.frames)
        except Unfit:
            raise _unexpected(type_, slot, at, self._frame_hint(slot, at)) from None
        _check_length(type_.max_len, data, at)
        return data

    def _frame_hint(self, slot: Any, at: At) -> str:
        if type(slot) is not int:
            return ""
        if at.inline or self.frames is None:
            return ", the index of a frame, where none can stand"
        return ", the index of a frame that is not there or was taken before"

    def _plain(self, type_: table.Plain, slot: Any, at: At) -> Any:
        self._check_plain(slot, at, wire.PLAIN_DEPTH)
        return slot

    def _check_plain(self, slot: Any, at: At, level: int) -> None:
        if not isinstance(slot, (list, dict)):
            try:
                wire.as_plain(slot)
            except Unfit:
                raise DecodeError(
                    at.path, f"expected {PLAIN_TEXT}, got {show(slot)}"
                ) from None
            return
        if level == 0:
            raise DecodeError(
                at.path, f"nested more than {wire.PLAIN_DEPTH} levels deep"
            )
        items: Iterable[tuple[Any, Any]] = enumerate(slot)
        if isinstance(slot, dict):
            items = slot.items()
            for key in slot:
                if type(key) is not str:
                    raise DecodeError(at.path, f"expected str keys, got {show(key)}")
        for key, item in items:
            self._check_plain(item, at.item(key), level - 1)

    def _enum(self, type_: table.Enum, slot: Any, at: At) -> Any:
        members = {int(member): member for member in type_.cls}
        try:
            return wire.decode_member(slot, members, type_.unknown)
        except Unfit:
            detail = ", no number of a member" if type(slot) is int else ""
            raise _unexpected(type_, slot, at, detail) from None

    def _list(self, type_: table.List, slot: Any, at: At) -> list[Any]:
        items = _of_class(list, type_, slot, at)
        _check_length(type_.max_len, items, at)
        return [
            self._value(type_.item, item, at.item(index))
            for index, item in enumerate(items)
        ]

    def _tuple(self, type_: table.Tuple, slot: Any, at: At) -> tuple[Any, ...]:
        items = _of_class(list, type_, slot, at)
        if len(items) != len(type_.items):
            raise _unexpected(type_, slot, at)
        return tuple(
            self._value(item_type, item, at.item(index))
            for index, (item_type, item) in enumerate(zip(type_.items, items))
        )

    def _dict(self, type_: table.Dict, slot: Any, at: At) -> dict[Any, Any]:
        items = _of_class(dict, type_, slot, at)
        _check_length(type_.max_len, items, at)
        return {
            self._value(type_.key, key, at.key()): self._value(
                type_.value, item, at.item(key)
            )
            for key, item in items.items()
        }

    def _nullable(self, type_: table.Nullable, slot: Any, at: At) -> Any:
        return None if slot is None else self._value(type_.item, slot, at)

    def _union(self, type_: table.Union, slot: Any, at: At) -> Any:
        messages = [each for each in type_.options if isinstance(each, table.Message)]
        if messages and type(slot) is list:
            return self._one_of(messages, slot, at)
        for option in type_.options:
            if type(slot) is _wire_class(option):
                return self._value(option, slot, at.inlined())
        raise _unexpected(type_, slot, at)

    def _nested_message(self, type_: table.Message, slot: Any, at: At) -> Any:
        return self._one_of([type_], _of_class(list, type_, slot, at), at)

    def _one_of(self, options: Sequence[table.Message], slot: list[Any], at: At) -> Any:
        tag = slot[0] if slot else None
        for option in options:
            if type(tag) is int and self.records[option.cls].tag == tag:
                return self._record(option.cls, slot, at)
        known = listed(
            (f"{self.records[each.cls].tag} {each}" for each in options), ", "
        )
        raise DecodeError(at.path, f"expected a tag of ({known}), got {show(tag)}")

    def _struct(self, type_: table.Struct, slot: Any, at: At) -> Any:
        return self._record(type_.cls, slot, at)

    def _tensor(self, type_: table.Tensor, slot: Any, at: At) -> torch.Tensor:
        frames = None if at.inline else self.frames
        shape = tensor_shape(type_)
        try:
            if type_.dtype == "any":
                return tensors.decode_any_tensor(slot, shape, frames, type_.max_len)
            dtype = tensors.DTYPES[type_.dtype]
            return tensors.decode_tensor(slot, dtype, shape, frames, type_.max_len)
        except Unfit:
            payload = slot[-1] if isinstance(slot, list) and slot else slot
            detail = self._frame_hint(payload, at)
            raise _unexpected(type_, slot, at, detail) from None
        except Exception as error:
            raise DecodeError(
                at.path, f"torch refuses the tensor: {first_line(error)}"
            ) from error


def _unexpected(type_: table.Type, slot: Any, at: At, detail: str = "") -> DecodeError:
    return DecodeError(at.path, expected(type_, slot, detail))


def _of_class(cls: type[T], type_: table.Type, slot: Any, at: At) -> T:
    if type(slot) is not cls:
        raise _unexpected(type_, slot, at)
    return slot


def _check_length(limit: int | None, value: Any, at: At) -> None:
    fault = length_fault(limit, len(value))
    if fault is not None:
        raise DecodeError(at.path, fault)


def _wire_class(option: table.Type) -> type:
    """Return the class that msgpack gives for an alternative's kind."""
    if isinstance(option, table.Tensor):
        return bytes if option.is_vector else list
    classes: dict[type, type] = {
        table.Bool: bool,
        table.Int: int,
        table.Enum: int,
        table.Float: float,
        table.Str: str,
        table.Bytes: bytes,
        table.Dict: dict,
    }
    return classes.get(type(option), list)


_METHODS: dict[type, Callable[..., Any]] = {
    table.Bool: ReferenceDecoder._bool,
    table.Int: ReferenceDecoder._int,
    table.Float: ReferenceDecoder._float,
    table.Str: ReferenceDecoder._str,
    table.Bytes: ReferenceDecoder._bytes,
    table.Plain: ReferenceDecoder._plain,
    table.Enum: ReferenceDecoder._enum,
    table.List: ReferenceDecoder._list,
    table.Tuple: ReferenceDecoder._tuple,
    table.Dict: ReferenceDecoder._dict,
    table.Nullable: ReferenceDecoder._nullable,
    table.Union: ReferenceDecoder._union,
    table.Struct: ReferenceDecoder._struct,
    table.Message: ReferenceDecoder._nested_message,
    table.Tensor: ReferenceDecoder._tensor,
}

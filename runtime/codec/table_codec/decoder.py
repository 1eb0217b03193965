"""From the slots of an array to its message, by the description table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from msgen.runtime.codec import shapes, table, tensors, wire
from msgen.runtime.codec.frames import FrameReader, Unfit
from msgen.runtime.codec.show import listed, show
from msgen.runtime.errors import DecodeError

from .walker import At, Walker, first_line


@dataclass
class TableDecoder(Walker):
    """Decodes one message from what msgpack unpacked.

    Attributes:
        frames: the payload frames; None where all payloads stand in the array.
    """

    error = DecodeError
    frames: FrameReader | None

    def message(self, cls: type, slots: list[Any]) -> Any:
        """Return the message of `[tag, slot, ...]`.

        Raises:
            DecodeError: with the path of the first slot that does not fit.
        """
        return self._record(cls, slots, At(self.records[cls].name))

    def _record(self, cls: type, slots: Any, at: At) -> Any:
        record = self.records[cls]
        inside = self.enter(record, at)
        if type(slots) is not list:
            raise self.fault(
                at, f"expected an array of {record.name}, got {show(slots)}"
            )
        if record.tag is not None:
            slots = slots[1:]
        values: dict[str, Any] = {}
        for index, field in enumerate(record.fields):
            if index < len(slots):
                if not field.removed:
                    values[field.name] = self._field(field, slots[index], inside)
            elif field.default is None or field.since == 1:
                least = sum(each.since == 1 for each in record.fields)
                raise self.fault(
                    at,
                    f"expected at least {least} slots, got {len(slots)}; "
                    f"'{field.name}' is missing",
                )
            elif not field.removed:
                values[field.name] = field.default()
        value = cls(**values)
        conflict = shapes.find_conflict(value, record)
        if conflict is not None:
            raise self.fault(at, conflict)
        return value

    def _field(self, field: table.Field, slot: Any, at: At) -> Any:
        if slot is None and field.default is not None and not field.takes_nil:
            return field.default()
        return self.value(field.type, slot, at.field(field.name))

    def _float(self, type_: table.Float, slot: Any, at: At) -> float:
        number: float = self.take(float, type_, slot, at)
        self.check_float(type_, number, slot, at)
        return number

    def _bytes(self, type_: table.Bytes, slot: Any, at: At) -> bytes:
        try:
            data = wire.decode_bytes(slot, None if at.inline else self.frames)
        except Unfit:
            raise self.unexpected(type_, slot, at, self._frame_hint(slot, at)) from None
        self.check_length(type_.max_len, data, at)
        return data

    def _frame_hint(self, slot: Any, at: At) -> str:
        if type(slot) is not int:
            return ""
        if at.inline or self.frames is None:
            return ", the index of a frame, where none can stand"
        return ", the index of a frame that is not there or was taken before"

    def _enum(self, type_: table.Enum, slot: Any, at: At) -> Any:
        members = {int(member): member for member in type_.cls}
        try:
            return wire.decode_member(slot, members, type_.unknown)
        except Unfit:
            detail = ", no number of a member" if type(slot) is int else ""
            raise self.unexpected(type_, slot, at, detail) from None

    def _tuple(self, type_: table.Tuple, slot: Any, at: At) -> tuple[Any, ...]:
        items = self.take(list, type_, slot, at)
        if len(items) != len(type_.items):
            raise self.unexpected(type_, slot, at)
        return tuple(
            self.value(item_type, item, at.item(index))
            for index, (item_type, item) in enumerate(zip(type_.items, items))
        )

    def _union(self, type_: table.Union, slot: Any, at: At) -> Any:
        messages = [each for each in type_.options if isinstance(each, table.Message)]
        if messages and type(slot) is list:
            return self._one_of(messages, slot, at)
        for option in type_.options:
            if type(slot) is _wire_class(option):
                return self.value(option, slot, at.option())
        raise self.unexpected(type_, slot, at)

    def _message(self, type_: table.Message, slot: Any, at: At) -> Any:
        return self._one_of([type_], self.take(list, type_, slot, at), at)

    def _one_of(self, options: Sequence[table.Message], slot: list[Any], at: At) -> Any:
        tag = slot[0] if slot else None
        for option in options:
            if type(tag) is int and self.records[option.cls].tag == tag:
                return self._record(option.cls, slot, at)
        known = listed(
            (f"{self.records[each.cls].tag} {each}" for each in options), ", "
        )
        raise self.fault(at, f"expected a tag of ({known}), got {show(tag)}")

    def _struct(self, type_: table.Struct, slot: Any, at: At) -> Any:
        return self._record(type_.cls, slot, at)

    def _tensor(self, type_: table.Tensor, slot: Any, at: At) -> torch.Tensor:
        try:
            frames = None if at.inline else self.frames
            return tensors.decode_slot(type_, frames, slot)
        except Unfit:
            payload = slot[-1] if isinstance(slot, list) and slot else slot
            detail = self._frame_hint(payload, at)
            raise self.unexpected(type_, slot, at, detail) from None
        except Exception as error:
            raise self.fault(
                at, f"torch refuses the tensor: {first_line(error)}"
            ) from error


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

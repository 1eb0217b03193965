"""What the two halves of the table codec have in common."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from msgen.runtime.codec import table, wire
from msgen.runtime.codec.show import short, show
from msgen.runtime.errors import DecodeError, EncodeError

_PLAIN = "None, bool, int, float, str, bytes, or lists and str-keyed dicts of them"

_ITEM = "[{}]"
_KEY = "key of {}"


@dataclass(slots=True)
class At:
    """Where the codec stands: a chain of steps, spelled out only when something is wrong.

    Attributes:
        depth: times that a recursive record may still be entered.
        inline: in a union or a dict key: a payload cannot be a frame of its own.
    """

    step: object
    form: str = "{}"
    parent: At | None = None
    depth: int = wire.MAX_DEPTH
    inline: bool = False

    @property
    def path(self) -> str:
        """Such as `UserMsg.sampling_params.top_k`."""
        path = ""
        at: At | None = self
        while at is not None:
            if at.form == _KEY:
                return f"key of {at.parent.path if at.parent else ''}{path}"
            step = short(at.step) if at.form == _ITEM else at.step
            path = f"{at.form.format(step)}{path}"
            at = at.parent
        return path

    def field(self, name: str) -> At:
        return At(name, ".{}", self, self.depth)

    def item(self, key: object) -> At:
        return At(key, _ITEM, self, self.depth, self.inline)

    def key(self) -> At:
        return At("", _KEY, self, self.depth, inline=True)

    def option(self) -> At:
        return At("", "{}", self, self.depth, inline=True)

    def record(self, depth: int) -> At:
        return At("", "{}", self, depth)


@dataclass
class Walker:
    """Takes the value of one message apart by its types; its subclasses encode or decode.

    There is one method for each class of the table, found by that class's name. msgpack gives
    objects of exactly its own types, so that what takes subclasses and numpy's numbers on the way
    in is right on the way out as well.

    Attributes:
        error: the class of the errors.
        hint: what a value nested too deeply may be.
    """

    error: ClassVar[type[EncodeError | DecodeError]]
    hint: ClassVar[str] = ""
    records: table.Records

    def value(self, type_: table.Type, value: Any, at: At) -> Any:
        return getattr(self, f"_{type(type_).__name__.lower()}")(type_, value, at)

    def fault(self, at: At, reason: str) -> EncodeError | DecodeError:
        return self.error(at.path, reason)

    def unexpected(
        self, type_: table.Type, value: Any, at: At, detail: str = ""
    ) -> EncodeError | DecodeError:
        """The most common error: what was expected, and what was there."""
        return self.fault(at, f"expected {type_}, got {show(value)}{detail}")

    def take(self, cls: Any, type_: table.Type, value: Any, at: At) -> Any:
        if not isinstance(value, cls):
            raise self.unexpected(type_, value, at)
        return value

    def check_length(self, limit: int | None, value: Any, at: At) -> None:
        if limit is not None and len(value) > limit:
            raise self.fault(at, f"length {len(value)} is above the limit of {limit}")

    def enter(self, record: table.Record, at: At) -> At:
        """Go into a struct or message, which a recursive one may only do so often."""
        if not record.recursive:
            return at.record(wire.MAX_DEPTH)
        if at.depth == 0:
            raise self.fault(
                at,
                f"nested more than {wire.MAX_DEPTH} levels deep; does it contain itself?",
            )
        return at.record(at.depth - 1)

    def _bool(self, type_: table.Bool, value: Any, at: At) -> bool:
        return bool(self.take((bool, np.bool_), type_, value, at))

    def _int(self, type_: table.Int, value: Any, at: At) -> int:
        if not is_integer(value):
            raise self.unexpected(type_, value, at)
        low, high = type_.limits
        if not low <= int(value) <= high:
            raise self.unexpected(type_, value, at, f", out of range {low} to {high}")
        return int(value)

    def check_float(
        self, type_: table.Float, number: float, value: Any, at: At
    ) -> None:
        if type_.finite and not math.isfinite(number):
            raise self.unexpected(type_, value, at, ", which is not finite")
        if type_.bits == 32 and wire.F32_MAX < abs(number) < math.inf:
            raise self.unexpected(type_, value, at, ", too large for 32 bits")

    def _str(self, type_: table.Str, value: Any, at: At) -> str:
        text = str.__str__(self.take(str, type_, value, at))
        try:
            text.encode()
        except UnicodeEncodeError as error:
            detail = f", which has a lone surrogate at {error.start}"
            raise self.unexpected(type_, value, at, detail) from None
        self.check_length(type_.max_len, text, at)
        return text

    def _plain(self, type_: table.Plain, value: Any, at: At) -> Any:
        return self._plain_at_level(value, at, wire.PLAIN_DEPTH)

    def _plain_at_level(self, value: Any, at: At, level: int) -> Any:
        if not isinstance(value, (list, dict)):
            return self._plain_leaf(value, at)
        if level == 0:
            raise self.fault(
                at, f"nested more than {wire.PLAIN_DEPTH} levels deep{self.hint}"
            )
        if isinstance(value, list):
            return [
                self._plain_at_level(item, at.item(index), level - 1)
                for index, item in enumerate(value)
            ]
        for key in value:
            if not isinstance(key, str):
                raise self.fault(at, f"expected str keys, got {show(key)}")
        return {
            self._str(table.Str(), key, at.key()): self._plain_at_level(
                item, at.item(key), level - 1
            )
            for key, item in value.items()
        }

    def _plain_leaf(self, value: Any, at: At) -> Any:
        if value is None:
            return None
        if isinstance(value, (bool, np.bool_)):
            return bool(value)
        if is_integer(value):
            if not wire.I64_MIN <= int(value) <= wire.U64_MAX:
                raise self.fault(
                    at, f"expected an integer of 64 bits, got {show(value)}"
                )
            return int(value)
        if isinstance(value, (float, np.floating)):
            return float(value)
        if isinstance(value, str):
            return self._str(table.Str(), value, at)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        raise self.fault(at, f"expected {_PLAIN}, got {show(value)}")

    def _list(self, type_: table.List, value: Any, at: At) -> list[Any]:
        # What a subclass holds, and not what it says.
        items = list.copy(self.take(list, type_, value, at))
        self.check_length(type_.max_len, items, at)
        return [
            self.value(type_.item, item, at.item(index))
            for index, item in enumerate(items)
        ]

    def _dict(self, type_: table.Dict, value: Any, at: At) -> dict[Any, Any]:
        items = dict.copy(self.take(dict, type_, value, at))
        self.check_length(type_.max_len, items, at)
        return {
            self.value(type_.key, key, at.key()): self.value(
                type_.value, item, at.item(key)
            )
            for key, item in items.items()
        }

    def _nullable(self, type_: table.Nullable, value: Any, at: At) -> Any:
        return None if value is None else self.value(type_.item, value, at)


def is_integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(
        value, (bool, np.bool_)
    )


def first_line(error: Exception) -> str:
    """The text of an error without what torch puts below it."""
    return next(iter(str(error).splitlines()), type(error).__name__)

"""What the table-driven codec's two halves share.

Generated functions take what fits exactly and give up on the rest. The rest comes to this codec,
with the message from the start: a number of numpy's or an instance of a subclass is converted,
everything else ends in an error that names the field. It is slower than generated code, and
complete: both give the same bytes for the same message, so it is also the reference that
generated code is tested against.
"""

from __future__ import annotations

import math
from typing import Any

from msgen.runtime.codec import table, wire
from msgen.runtime.codec.show import short, show
from msgen.runtime.codec.tensors import Shape
from msgen.runtime.errors import DecodeError, EncodeError

PLAIN_TEXT = "None, bool, int, float, str, bytes, or lists and str-keyed dicts of them"


_ITEM = "[{}]"
_KEY = "key of {}"


class At:
    """Where the codec stands: a chain of steps, spelled out only when something is wrong.

    Attributes:
        depth: times that a recursive record may still be entered.
        inline: an alternative or a dict key: a payload cannot be a frame of its own.
    """

    __slots__ = ("_form", "_parent", "_step", "depth", "inline")

    def __init__(
        self,
        step: object,
        form: str = "{}",
        parent: At | None = None,
        depth: int = wire.MAX_DEPTH,
        inline: bool = False,
    ) -> None:
        self._step = step
        self._form = form
        self._parent = parent
        self.depth = depth
        self.inline = inline

    @property
    def path(self) -> str:
        """Such as `UserMsg.sampling_params.top_k`."""
        path = ""
        at: At | None = self
        while at is not None:
            if at._form == _KEY:
                return f"key of {at._parent.path if at._parent else ''}{path}"
            step = short(at._step) if at._form == _ITEM else at._step
            path = f"{at._form.format(step)}{path}"
            at = at._parent
        return path

    def field(self, name: str) -> At:
        return At(name, ".{}", self, self.depth)

    def item(self, key: object) -> At:
        return At(key, _ITEM, self, self.depth, self.inline)

    def key(self) -> At:
        return At("", _KEY, self, self.depth, inline=True)

    def inlined(self) -> At:
        return At("", "{}", self, self.depth, inline=True)

    def inside(
        self, record: table.Record, error: type[EncodeError | DecodeError]
    ) -> At:
        """Enter a struct or message, which a recursive one may only do so often."""
        if not record.recursive:
            return At("", "{}", self)
        if self.depth == 0:
            raise error(
                self.path,
                f"nested more than {wire.MAX_DEPTH} levels deep; does it contain itself?",
            )
        return At("", "{}", self, self.depth - 1)


def expected(type_: table.Type, value: Any, detail: str = "") -> str:
    """The text of most errors: what was expected, and what was there."""
    return f"expected {type_}, got {show(value)}{detail}"


def float_fault(type_: table.Float, number: float) -> str | None:
    """Say which limit of its field a float breaks, None where it breaks none."""
    if type_.finite and not math.isfinite(number):
        return ", which is not finite"
    if type_.bits == 32 and wire.F32_MAX < abs(number) < math.inf:
        return ", too large for 32 bits"
    return None


def length_fault(limit: int | None, length: int) -> str | None:
    if limit is not None and length > limit:
        return f"length {length} is above the limit of {limit}"
    return None


def first_line(error: Exception) -> str:
    """The text of an error without what torch puts below it."""
    return next(iter(str(error).splitlines()), type(error).__name__)


def tensor_shape(type_: table.Tensor) -> Shape | None:
    """Return the sizes that a tensor's type fixes, None for any rank."""
    if type_.dims is None:
        return None
    return tuple(dim if isinstance(dim, int) else None for dim in type_.dims)


def takes_nil(type_: table.Type) -> bool:
    """Say whether nil is a value of a type, and not the sign for its default."""
    return isinstance(type_, (table.Nullable, table.Plain))

"""What the table-driven codec's two halves share.

Generated functions take what fits exactly and give up on the rest. The rest comes to this codec,
with the message from the start: a number of numpy's or an instance of a subclass is converted,
everything else ends in an error that names the field. It is slower than generated code, and
complete: both give the same bytes for the same message, so it is also the reference that
generated code is tested against.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from . import table, wire
from .errors import DecodeError, EncodeError
from .show import show
from .tensors import Shape

PLAIN_TEXT = "None, bool, int, float, str, bytes, or lists and str-keyed dicts of them"


@dataclass(frozen=True)
class At:
    """Where the codec stands.

    Attributes:
        path: of the value, such as `UserMsg.uid`.
        depth: times that a recursive record may still be entered.
        inline: an alternative or a dict key: a payload cannot be a frame of its own.
    """

    path: str
    depth: int = wire.MAX_DEPTH
    inline: bool = False

    def field(self, name: str) -> At:
        return At(f"{self.path}.{name}", self.depth)

    def item(self, key: object) -> At:
        return replace(self, path=f"{self.path}[{key!r}]")

    def key(self) -> At:
        return At(f"key of {self.path}", self.depth, inline=True)

    def inlined(self) -> At:
        return replace(self, inline=True)

    def inside(
        self, record: table.Record, error: type[EncodeError | DecodeError]
    ) -> At:
        """Enter a struct or message, which a recursive one may only do so often."""
        if not record.recursive:
            return At(self.path)
        if self.depth == 0:
            raise error(
                self.path,
                f"nested more than {wire.MAX_DEPTH} levels deep; does it contain itself?",
            )
        return At(self.path, self.depth - 1)


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

"""The calls of a codec, by the description table; `Codec` says what each does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from msgen.runtime.codec import table, wire
from msgen.runtime.codec.frames import (
    DEFAULT_THRESHOLD,
    Buffer,
    FrameReader,
    FrameWriter,
)
from msgen.runtime.codec.show import listed, show
from msgen.runtime.errors import (
    DecodeError,
    EncodeError,
    NotAMessage,
    SchemaMismatch,
    UnknownMessage,
)

from .decoder import TableDecoder
from .encoder import TableEncoder


@dataclass
class TableCodec:
    """Encodes and decodes the messages of a group, and explains what it cannot.

    Attributes:
        records: all structs and messages that its messages are made of.
        former: layouts that the group had in releases.
        removed: names of removed messages by tag.
    """

    group: str
    version: int
    fingerprint: str
    records: table.Records
    former: Sequence[table.Former]
    removed: Mapping[int, str]

    @cached_property
    def messages(self) -> table.Records:
        """The records that stand by themselves."""
        return {
            cls: record
            for cls, record in self.records.items()
            if record.tag is not None
        }

    @cached_property
    def prefix(self) -> int:
        """The header of a message, without its tag."""
        return wire.HEADER_BIT | _first_bits(self.fingerprint) << 8

    @cached_property
    def pack(self) -> Callable[[Any], bytes]:
        """The group's packing function: most need no regard to 32-bit floats."""
        tags = {
            record.tag
            for record in self.messages.values()
            if any(
                isinstance(part, table.Float) and part.bits == 32
                for part in _parts_within(self.records, record)
            )
        }
        if not tags:
            return wire.pack

        def pack(slots: Any) -> bytes:
            if slots[0] & 0xFF in tags:
                return wire.pack_with_singles(slots)
            return wire.pack(slots)

        return pack

    def encode(self, msg: Any, /) -> bytes:
        return self._encode(msg, None)

    def encode_frames(
        self, msg: Any, threshold: int = DEFAULT_THRESHOLD
    ) -> list[Buffer]:
        frames = FrameWriter(threshold)
        return [self._encode(msg, frames), *frames.buffers]

    def decode(self, data: Buffer, /) -> Any:
        return self._decode([data], False)

    def decode_frames(self, frames: Sequence[Buffer], /) -> Any:
        return self._decode(frames, True)

    def _encode(self, msg: Any, frames: FrameWriter | None) -> bytes:
        # Of an instance of a subclass, the nearest class that it derives from.
        bases = type(msg).__mro__
        record = next(
            (self.messages[cls] for cls in bases if cls in self.messages), None
        )
        if record is None:
            names = listed((each.name for each in self.messages.values()), ", ")
            raise EncodeError(
                self.group,
                f"expected a message of the group ({names}), got {show(msg)}",
            )
        try:
            slots = TableEncoder(self.records, frames).message(msg, record)
            slots[0] |= self.prefix
            return self.pack(slots)
        except EncodeError:
            raise
        except RecursionError:
            raise EncodeError(
                record.name, "nested too deeply for Python's stack"
            ) from None
        except Exception as error:
            raise EncodeError(
                record.name, f"msgpack cannot write the message: {error}"
            ) from error

    def _decode(self, frames: Sequence[Buffer], framed: bool) -> Any:
        if not frames:
            raise NotAMessage(self.group, "expected a head frame, got no frames")
        for frame in frames:
            # The caller's mistake, not the peer's.
            if not memoryview(frame).contiguous:
                raise TypeError("a frame is not contiguous in memory")
        slots = self._unpack(frames[0])
        header = slots[0]
        if header & ~0xFF != self.prefix:
            raise self._mismatch(header)
        tag = header & 0xFF
        for cls, record in self.messages.items():
            if record.tag == tag:
                reader = FrameReader(frames) if framed else None
                try:
                    return TableDecoder(self.records, reader).message(cls, slots)
                except RecursionError:
                    raise DecodeError(
                        record.name, "nested too deeply for Python's stack"
                    ) from None
        raise self._unknown(tag)

    def _unpack(self, head: Buffer) -> list[Any]:
        try:
            slots = wire.unpack(head)
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise NotAMessage(
                self.group, f"the bytes are not msgpack: {reason}"
            ) from None
        if type(slots) is not list or not slots:
            raise NotAMessage(
                self.group, f"expected an array with a header, got {show(slots)}"
            )
        header = slots[0]
        if type(header) is not int or not wire.HEADER_BIT <= header <= wire.U32_MAX:
            raise NotAMessage(
                self.group,
                f"expected a msgen header of 0x80000000 or more, got {show(header)}",
            )
        return slots

    def _unknown(self, tag: int) -> UnknownMessage:
        if tag in self.removed:
            reason = (
                f"message '{self.removed[tag]}' (tag {tag}) was removed from the schema; an older "
                "peer sends it"
            )
        else:
            reason = (
                f"this build (version {self.version}) has no message with tag {tag}; a newer peer "
                "sends it"
            )
        return UnknownMessage(self.group, reason, tag)

    def _mismatch(self, header: int) -> SchemaMismatch:
        ours = self.fingerprint
        bits = (header & ~wire.HEADER_BIT) >> 8
        for former in reversed(self.former):
            if _first_bits(former.fingerprint) == bits:
                return SchemaMismatch(
                    self.group,
                    f"the peer's schema differs: it is that of {former.label}, fingerprint "
                    f"{former.fingerprint}, this build's is {ours}; first difference: "
                    f"{former.difference}; build both from one schema",
                    ours,
                    former.fingerprint,
                    former.difference,
                )
        theirs = f"{bits << 1:06x}"
        return SchemaMismatch(
            self.group,
            f"the peer's schema differs: its fingerprint begins with {theirs} or "
            f"{(bits << 1) + 1:06x}, this build's is {ours}; build both from one "
            "schema, or send the message to the process of its own group",
            ours,
            theirs,
        )


def _first_bits(fingerprint: str) -> int:
    """Return the part of a fingerprint that a header carries."""
    return int(fingerprint[:6], 16) >> 1


def _parts_within(records: table.Records, root: table.Record) -> Iterator[table.Type]:
    """Yield every type that stands somewhere inside a message."""
    seen: set[type] = set()
    todo: list[table.Record] = [root]
    while todo:
        for field in todo.pop().fields:
            for part in table.parts(field.type):
                yield part
                if (
                    isinstance(part, (table.Struct, table.Message))
                    and part.cls not in seen
                ):
                    seen.add(part.cls)
                    todo.append(records[part.cls])

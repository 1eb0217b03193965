"""The Python engine: generated functions, with the table-driven codec behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgen.runtime.codec.reference.decoder import ReferenceDecoder
from msgen.runtime.codec.reference.encoder import ReferenceEncoder, find_record
from msgen.runtime.errors import (
    DecodeError,
    EncodeError,
    NotAMessage,
    SchemaMismatch,
    UnknownMessage,
)

from . import table, wire
from .frames import DEFAULT_THRESHOLD, Buffer, FrameReader, FrameWriter
from .show import listed, show
from .wire import Decoders, Encoders


@dataclass(frozen=True)
class Layout:
    """What both engines need to know of a group.

    Attributes:
        records: all structs and messages that its messages are made of.
        encoders: by class, of its messages.
        decoders: by tag, of its messages.
        removed: names of removed messages by tag.
        former: layouts that the group had in releases.
    """

    group: str
    version: int
    fingerprint: str
    records: table.Records
    encoders: Encoders
    decoders: Decoders
    removed: dict[int, str] = field(default_factory=dict)
    former: Sequence[table.Former] = ()

    @property
    def messages(self) -> table.Records:
        """The records that stand by themselves."""
        return {
            cls: record for cls, record in self.records.items() if cls in self.encoders
        }

    @property
    def prefix(self) -> int:
        """The header of a message, without its tag."""
        return wire.HEADER_BIT | _first_bits(self.fingerprint) << 8

    @property
    def has_payloads(self) -> bool:
        """Whether a message may have what can travel in a frame of its own."""
        return any(
            isinstance(part, (table.Bytes, table.Tensor))
            for part in _parts_within(self.records, self.messages.values())
        )


class PythonEngine:
    """The calls of a codec, in Python; `Codec` says what each does.

    The fast path gives up with any exception; the table-driven codec then starts from the message
    again, and converts it or explains what is wrong.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._records = layout.records
        self._messages = layout.messages
        self._former = {_first_bits(each.fingerprint): each for each in layout.former}
        self._prefix = layout.prefix
        self._pack = _choose_pack(layout.records, self._messages)
        by_header = {
            self._prefix | tag: decoder for tag, decoder in layout.decoders.items()
        }
        self.encode = self._make_encode()
        self.encode_frames = self._make_encode_frames()
        self.decode = self._make_decode(by_header)
        self.decode_frames = self._make_decode_frames(by_header)
        self.decode_received = self._make_decode_received(by_header)

    def _make_encode(self) -> Callable[[Any], bytes]:
        prefix, pack, encoders = self._prefix, self._pack, self._layout.encoders
        encode_slowly = self._encode_slowly

        def encode(msg: Any, /) -> bytes:
            """Encode a message of the group.

            Raises:
                EncodeError: a value does not fit its field; `path` names it.
            """
            try:
                slots = encoders[type(msg)](msg, None)
                slots[0] |= prefix
                return pack(slots)
            except Exception as error:
                cause = error.with_traceback(None)  # which would hold the message
            return encode_slowly(msg, None, cause)

        return encode

    def _make_encode_frames(self) -> Callable[..., list[Buffer]]:
        prefix, pack, encoders = self._prefix, self._pack, self._layout.encoders
        encode_slowly = self._encode_slowly

        def encode_frames(msg: Any, threshold: int = DEFAULT_THRESHOLD) -> list[Buffer]:
            """Encode a message of the group into frames.

            Args:
                msg: the message.
                threshold: bytes from which a payload is given a frame of its own.

            Returns:
                The head, then the payloads in the order of their slots. A payload may be a view
                of the message's memory.

            Raises:
                EncodeError: a value does not fit its field; `path` names it.
            """
            frames = FrameWriter(threshold)
            try:
                slots = encoders[type(msg)](msg, frames)
                slots[0] |= prefix
                return [pack(slots), *frames.buffers]
            except Exception as error:
                cause = error.with_traceback(None)  # which would hold the message
            frames = FrameWriter(threshold)
            return [encode_slowly(msg, frames, cause), *frames.buffers]

        return encode_frames

    def _make_decode(self, by_header: Decoders) -> Callable[[Buffer], Any]:
        unpackb = wire.unpackb
        decode_slowly = self._decode_slowly

        def decode(data: Buffer, /) -> Any:
            """Decode a message of the group.

            Raises:
                DecodeError: the bytes are no message of the group; its subclasses say in what
                    way, `path` says where.
            """
            try:
                slots = unpackb(data, strict_map_key=False)
                # The decoder tests that this is a list and its header an integer.
                return by_header[slots[0]](slots, None)
            except Exception:
                pass
            return decode_slowly([data], False)

        return decode

    def _make_decode_frames(
        self, by_header: Decoders
    ) -> Callable[[Sequence[Buffer]], Any]:
        unpackb = wire.unpackb
        decode_slowly = self._decode_slowly

        def decode_frames(frames: Sequence[Buffer], /) -> Any:
            """Decode a message of the group from its frames.

            Args:
                frames: the head, then the payloads, as `encode_frames` returned them.

            Raises:
                DecodeError: the frames are no message of the group.
            """
            try:
                slots = unpackb(frames[0], strict_map_key=False)
                return by_header[slots[0]](slots, FrameReader(frames))
            except Exception:
                pass
            return decode_slowly(frames, True)

        return decode_frames

    def _make_decode_received(
        self, by_header: Decoders
    ) -> Callable[[Buffer, Callable[[], Sequence[Buffer]]], Any]:
        unpackb = wire.unpackb
        decode_frames = self.decode_frames

        def decode_received(head: Buffer, rest: Callable[[], Sequence[Buffer]]) -> Any:
            """Decode a message that is most likely a head alone.

            Args:
                head: the first frame.
                rest: fetches the payload frames; called where the head does not do alone.

            Raises:
                DecodeError: the frames are no message of the group.
            """
            try:
                slots = unpackb(head, strict_map_key=False)
                return by_header[slots[0]](slots, None)
            except Exception:
                pass
            return decode_frames([head, *rest()])

        return decode_received

    def _encode_slowly(
        self, msg: Any, frames: FrameWriter | None, cause: Exception
    ) -> bytes:
        """Encode with the table-driven codec, which explains what it cannot convert."""
        record = find_record(self._messages, msg)
        if record is None:
            names = listed((each.name for each in self._messages.values()), ", ")
            raise EncodeError(
                self._layout.group,
                f"expected a message of the group ({names}), got {show(msg)}",
            )
        try:
            slots = ReferenceEncoder(self._records, frames).message(msg, record)
            slots[0] |= self._prefix
            return self._pack(slots)
        except EncodeError:
            raise
        except RecursionError:
            raise EncodeError(
                record.name, "nested too deeply for Python's stack"
            ) from None
        except Exception as error:
            raise EncodeError(
                record.name,
                f"msgpack cannot write the message: {error} (first tried: {cause!r})",
            ) from error

    def _decode_slowly(self, frames: Sequence[Buffer], framed: bool) -> Any:
        """Decode with the table-driven codec, which explains what is wrong."""
        if not frames:
            raise NotAMessage(
                self._layout.group, "expected a head frame, got no frames"
            )
        for frame in frames:
            # The caller's mistake, not the peer's.
            if not memoryview(frame).contiguous:
                raise TypeError("a frame is not contiguous in memory")
        slots = self._unpack(frames[0])
        header = slots[0]
        if header & ~0xFF != self._prefix:
            raise self._mismatch(header)
        tag = header & 0xFF
        for cls, record in self._messages.items():
            if record.tag == tag:
                reader = FrameReader(frames) if framed else None
                try:
                    return ReferenceDecoder(self._records, reader).message(cls, slots)
                except RecursionError:
                    raise DecodeError(
                        record.name, "nested too deeply for Python's stack"
                    ) from None
        raise self._unknown(tag)

    def _unknown(self, tag: int) -> UnknownMessage:
        if tag in self._layout.removed:
            reason = (
                f"message '{self._layout.removed[tag]}' (tag {tag}) was removed from the "
                "schema; an older peer sends it"
            )
        else:
            reason = (
                f"this build (version {self._layout.version}) has no message with tag {tag}; a "
                "newer peer sends it"
            )
        return UnknownMessage(self._layout.group, reason, tag)

    def _unpack(self, head: Buffer) -> list[Any]:
        group = self._layout.group
        try:
            slots = wire.unpack(head)
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise NotAMessage(group, f"the bytes are not msgpack: {reason}") from None
        if type(slots) is not list or not slots:
            raise NotAMessage(
                group, f"expected an array with a header, got {show(slots)}"
            )
        header = slots[0]
        if type(header) is not int or not wire.HEADER_BIT <= header <= wire.U32_MAX:
            raise NotAMessage(
                group,
                f"expected a msgen header of 0x80000000 or more, got {show(header)}",
            )
        return slots

    def _mismatch(self, header: int) -> SchemaMismatch:
        group, ours = self._layout.group, self._layout.fingerprint
        bits = (header & ~wire.HEADER_BIT) >> 8
        theirs = f"{bits << 1:06x}"
        former = self._former.get(bits)
        if former is not None:
            return SchemaMismatch(
                group,
                f"the peer's schema differs: it is that of {former.label}, fingerprint "
                f"{former.fingerprint}, this build's is {ours}; first difference: "
                f"{former.difference}; build both from one schema",
                ours,
                former.fingerprint,
                former.difference,
            )
        return SchemaMismatch(
            group,
            f"the peer's schema differs: its fingerprint begins with {theirs} or "
            f"{(bits << 1) + 1:06x}, this build's is {ours}; build both from one "
            "schema, or send the message to the process of its own group",
            ours,
            theirs,
        )


def _first_bits(fingerprint: str) -> int:
    """Return the part of a fingerprint that a header carries."""
    return int(fingerprint[:6], 16) >> 1


def _choose_pack(
    records: table.Records, messages: table.Records
) -> Callable[[Any], bytes]:
    """Return the packing function of a group: most need no regard to 32-bit floats."""
    tags = {
        record.tag
        for record in messages.values()
        if any(
            isinstance(part, table.Float) and part.bits == 32
            for part in _parts_within(records, [record])
        )
    }
    if not tags:
        return wire.pack

    def pack(slots: Any) -> bytes:
        if slots[0] & 0xFF in tags:
            return wire.pack_with_singles(slots)
        return wire.pack(slots)

    return pack


def _parts_within(
    records: table.Records, roots: Iterable[table.Record]
) -> Iterator[table.Type]:
    """Yield every type that stands somewhere inside the given messages."""
    seen: set[type] = set()
    todo = [*roots]
    while todo:
        for each in todo.pop().fields:
            for part in table.parts(each.type):
                yield part
                if (
                    isinstance(part, (table.Struct, table.Message))
                    and part.cls not in seen
                ):
                    seen.add(part.cls)
                    todo.append(records[part.cls])

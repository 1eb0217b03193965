"""The codec of one group: generated functions, with the table-driven codec behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from . import table, wire
from .errors import (
    DecodeError,
    EncodeError,
    NotAMessage,
    SchemaMismatch,
    UnknownMessage,
)
from .frames import DEFAULT_THRESHOLD, Buffer, FrameReader, FrameWriter
from .reference_decoder import ReferenceDecoder
from .reference_encoder import ReferenceEncoder, find_record
from .show import listed, show
from .wire import Decoders, Encoders

M = TypeVar("M")
M_co = TypeVar("M_co", covariant=True)
M_contra = TypeVar("M_contra", contravariant=True)


class EncodeFrames(Protocol[M_contra]):
    """The type of `encode_frames`, whose threshold is optional."""

    def __call__(self, msg: M_contra, threshold: int = ...) -> list[Buffer]: ...


class DecodeReceived(Protocol[M_co]):
    """The type of `decode_received`."""

    def __call__(self, head: Buffer, rest: Callable[[], Sequence[Buffer]]) -> M_co: ...


class Codec(Generic[M]):
    """Encodes and decodes the messages of one group.

    Attributes:
        group: the group's name.
        receiver: the process that reads its messages.
        version: the group's version.
        fingerprint: SHA-256 of its wire layout, 64 hex digits; peers with the same one understand
            each other.
        encode: message to bytes; raises EncodeError.
        decode: bytes to message; raises DecodeError.
        encode_frames: message to a head and payload frames; raises EncodeError.
        decode_frames: a head and payload frames to a message; raises DecodeError.
        decode_received: the same, for a reader that has the head and can fetch what follows;
            raises DecodeError.
        batch: makes the group's batch message of a list of its messages; None without a batch.

    A frame of `encode_frames` may be a view of a tensor of the message: change the tensor only
    after the frames were sent or copied.
    """

    def __init__(
        self,
        *,
        group: str,
        receiver: str,
        version: int,
        fingerprint: str,
        records: table.Records,
        encoders: Encoders,
        decoders: Decoders,
        former: Sequence[table.Former] = (),
        removed: Mapping[int, str] | None = None,
        batch: Callable[[list[Any]], M] | None = None,
    ) -> None:
        self.group = group
        self.receiver = receiver
        self.version = version
        self.fingerprint = fingerprint
        self.batch = batch
        self._records = records
        self._messages = {
            cls: record for cls, record in records.items() if cls in encoders
        }
        self._removed = dict(removed or {})
        self._former = {_first_bits(each.fingerprint): each for each in former}
        self._prefix = wire.HEADER_BIT | _first_bits(fingerprint) << 8
        by_header = {self._prefix | tag: decoder for tag, decoder in decoders.items()}
        pack = _choose_pack(records, self._messages)
        self._pack = pack
        self.encode: Callable[[M], bytes] = self._make_encode(encoders, pack)
        self.decode: Callable[[Buffer], M] = self._make_decode(by_header)
        self._has_payloads = any(
            isinstance(part, (table.Bytes, table.Tensor))
            for part in _parts_within(records, self._messages.values())
        )
        self.encode_frames: EncodeFrames[M] = (
            self._make_encode_frames(encoders, pack)
            if self._has_payloads
            else self._make_encode_single(self.encode)
        )
        self.decode_frames: Callable[[Sequence[Buffer]], M] = self._make_decode_frames(
            by_header
        )
        self.decode_received: DecodeReceived[M] = self._make_decode_received(by_header)

    def __repr__(self) -> str:
        return (
            f"<Codec of group {self.group!r}, version {self.version}, "
            f"fingerprint {self.fingerprint[:12]}>"
        )

    def _make_encode(
        self, encoders: Encoders, pack: Callable[[Any], bytes]
    ) -> Callable[[M], bytes]:
        prefix = self._prefix
        encode_slowly = self._encode_slowly

        def encode(msg: M) -> bytes:
            """Encode a message of the group.

            Raises:
                EncodeError: a value does not fit its field; `path` names it.
            """
            try:
                slots = encoders[type(msg)](msg, None)
                slots[0] |= prefix
                return pack(slots)
            except Exception as error:
                cause = error
            return encode_slowly(msg, None, cause)

        return encode

    def _make_encode_frames(
        self, encoders: Encoders, pack: Callable[[Any], bytes]
    ) -> EncodeFrames[M]:
        prefix = self._prefix
        encode_slowly = self._encode_slowly

        def encode_frames(msg: M, threshold: int = DEFAULT_THRESHOLD) -> list[Buffer]:
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
                cause = error
            frames = FrameWriter(threshold)
            return [encode_slowly(msg, frames, cause), *frames.buffers]

        return encode_frames

    def encoder(self, threshold: int) -> Callable[[M], bytes | list[Buffer]]:
        """Return a function that encodes a message to its only frame, or else to its frames.

        Args:
            threshold: bytes from which a payload is given a frame of its own.
        """
        if not self._has_payloads:
            return self.encode
        encode_frames = self.encode_frames

        def encode(msg: M) -> bytes | list[Buffer]:
            """Encode a message of the group.

            Raises:
                EncodeError: a value does not fit its field; `path` names it.
            """
            return encode_frames(msg, threshold)

        return encode

    def _make_encode_single(self, encode: Callable[[M], bytes]) -> EncodeFrames[M]:
        def encode_frames(msg: M, threshold: int = DEFAULT_THRESHOLD) -> list[Buffer]:
            """Encode a message into its head: no message of the group has a payload.

            Raises:
                EncodeError: a value does not fit its field; `path` names it.
            """
            return [encode(msg)]

        return encode_frames

    def _make_decode(self, by_header: Decoders) -> Callable[[Buffer], M]:
        unpackb = wire.unpackb
        decode_slowly = self._decode_slowly

        def decode(data: Buffer) -> M:
            """Decode a message of the group.

            Raises:
                DecodeError: the bytes are no message of the group; its subclasses say in what
                    way, `path` says where.
            """
            try:
                slots = unpackb(data, strict_map_key=False)
                # The decoder tests that this is a list and its header an integer.
                message: M = by_header[slots[0]](slots, None)
                return message
            except Exception:
                pass
            return decode_slowly([data], False)

        return decode

    def _make_decode_frames(
        self, by_header: Decoders
    ) -> Callable[[Sequence[Buffer]], M]:
        unpackb = wire.unpackb
        decode_slowly = self._decode_slowly

        def decode_frames(frames: Sequence[Buffer]) -> M:
            """Decode a message of the group from its frames.

            Args:
                frames: the head, then the payloads, as `encode_frames` returned them.

            Raises:
                DecodeError: the frames are no message of the group.
            """
            try:
                slots = unpackb(frames[0], strict_map_key=False)
                message: M = by_header[slots[0]](slots, FrameReader(frames))
                return message
            except Exception:
                pass
            return decode_slowly(frames, True)

        return decode_frames

    def _make_decode_received(self, by_header: Decoders) -> DecodeReceived[M]:
        unpackb = wire.unpackb
        decode_frames = self.decode_frames

        def decode_received(head: Buffer, rest: Callable[[], Sequence[Buffer]]) -> M:
            """Decode a message that is most likely a head alone.

            Args:
                head: the first frame.
                rest: fetches the payload frames; called where the head does not do alone.

            Raises:
                DecodeError: the frames are no message of the group.
            """
            try:
                slots = unpackb(head, strict_map_key=False)
                message: M = by_header[slots[0]](slots, None)
                return message
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
                self.group,
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

    def _decode_slowly(self, frames: Sequence[Buffer], framed: bool) -> M:
        """Decode with the table-driven codec, which explains what is wrong."""
        if not frames:
            raise NotAMessage(self.group, "expected a head frame, got no frames")
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
                    message: M = ReferenceDecoder(self._records, reader).message(
                        cls, slots
                    )
                    return message
                except RecursionError:
                    raise DecodeError(
                        record.name, "nested too deeply for Python's stack"
                    ) from None
        if tag in self._removed:
            reason = (
                f"message '{self._removed[tag]}' (tag {tag}) was removed from the schema; an "
                "older peer sends it"
            )
        else:
            reason = (
                f"this build (version {self.version}) has no message with tag {tag}; a newer "
                "peer sends it"
            )
        raise UnknownMessage(self.group, reason, tag)

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

    def _mismatch(self, header: int) -> SchemaMismatch:
        bits = (header & ~wire.HEADER_BIT) >> 8
        theirs = f"{bits << 1:06x}"
        former = self._former.get(bits)
        if former is not None:
            return SchemaMismatch(
                self.group,
                f"the peer's schema differs: it is that of {former.label}, fingerprint "
                f"{former.fingerprint}, this build's is {self.fingerprint}; first difference: "
                f"{former.difference}; build both from one schema",
                self.fingerprint,
                former.fingerprint,
                former.difference,
            )
        return SchemaMismatch(
            self.group,
            f"the peer's schema differs: its fingerprint begins with {theirs} or "
            f"{(bits << 1) + 1:06x}, this build's is {self.fingerprint}; build both from one "
            "schema, or send the message to the process of its own group",
            self.fingerprint,
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
        for field in todo.pop().fields:
            for part in table.parts(field.type):
                yield part
                if (
                    isinstance(part, (table.Struct, table.Message))
                    and part.cls not in seen
                ):
                    seen.add(part.cls)
                    todo.append(records[part.cls])

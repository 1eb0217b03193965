"""The generated functions' engine: serves where no compiled engine is.

A call is one msgpack call and one generated function, found by the message's class or header. They
take what fits, and end with any exception otherwise; the table codec then starts again from the
message or the bytes. It is called outside of the `except` clause: the traceback holds the message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from .frames import DEFAULT_THRESHOLD, Buffer, FrameReader, FrameWriter
from .table_codec import TableCodec
from .wire import Decoders, Encoders, unpackb


class PythonEngine:
    """The calls of a codec, by generated functions.

    Args:
        encoders: by class, of the group's messages.
        decoders: by tag.
    """

    def __init__(
        self, table_codec: TableCodec, encoders: Encoders, decoders: Decoders
    ) -> None:
        self._table_codec = table_codec
        self._prefix = table_codec.prefix
        self._pack = table_codec.pack
        self._encoders = encoders
        self._decoders = {self._prefix | tag: each for tag, each in decoders.items()}

    def encode(self, msg: Any, /) -> bytes:
        """Encode a message of the group.

        Raises:
            EncodeError: a value does not fit its field; `path` names it.
        """
        try:
            slots = self._encoders[type(msg)](msg, None)
            slots[0] |= self._prefix
            pack = self._pack  # by a name: `self._pack(...)` looks for a method first
            return pack(slots)
        except Exception:
            pass
        return self._table_codec.encode(msg)

    def encode_frames(
        self, msg: Any, threshold: int = DEFAULT_THRESHOLD
    ) -> list[Buffer]:
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
            slots = self._encoders[type(msg)](msg, frames)
            slots[0] |= self._prefix
            pack = self._pack
            return [pack(slots), *frames.buffers]
        except Exception:
            pass
        return self._table_codec.encode_frames(msg, threshold)

    def encode_for(self, threshold: int, msg: Any, /) -> bytes | list[Buffer]:
        """Encode a message of the group to its only frame, or else to its frames.

        Raises:
            EncodeError: a value does not fit its field; `path` names it.
        """
        frames = self.encode_frames(msg, threshold)
        return frames if len(frames) > 1 else cast(bytes, frames[0])

    # The decoders test that what was unpacked is a list with an integer header.

    def decode(self, data: Buffer, /) -> Any:
        """Decode a message of the group.

        Raises:
            DecodeError: the bytes are no message of the group; its subclasses say in what
                way, `path` says where.
        """
        try:
            slots = unpackb(data, strict_map_key=False)
            return self._decoders[slots[0]](slots, None)
        except Exception:
            pass
        return self._table_codec.decode(data)

    def decode_frames(self, frames: Sequence[Buffer], /) -> Any:
        """Decode a message of the group from its frames.

        Args:
            frames: the head, then the payloads, as `encode_frames` returned them.

        Raises:
            DecodeError: the frames are no message of the group.
        """
        try:
            slots = unpackb(frames[0], strict_map_key=False)
            return self._decoders[slots[0]](slots, FrameReader(frames))
        except Exception:
            pass
        return self._table_codec.decode_frames(frames)

    def decode_received(
        self, head: Buffer, rest: Callable[[], Sequence[Buffer]], /
    ) -> Any:
        """Decode a message that is most likely a head alone.

        Args:
            head: the first frame.
            rest: fetches the payload frames; called where the head does not do alone.

        Raises:
            DecodeError: the frames are no message of the group.
        """
        try:
            slots = unpackb(head, strict_map_key=False)
            return self._decoders[slots[0]](slots, None)
        except Exception:
            pass
        return self.decode_frames([head, *rest()])

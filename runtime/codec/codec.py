"""The codec of one group: its calls, served by one of two engines with the table codec behind it.

Where the compiled engine was built it serves; where not, or where `MSGEN_CODEC=python` says so, the
generated functions do. Both take what fits exactly. What they refuse goes to the table codec, which
converts it or raises the error: two attempts at most, and one place that knows errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from . import native_engine, table
from .frames import Buffer
from .python_engine import PythonEngine
from .table_codec import TableCodec
from .wire import Decoders, Encoders

M = TypeVar("M")
M_contra = TypeVar("M_contra", contravariant=True)

Fetch: TypeAlias = Callable[[], Sequence[Buffer]]
"""Fetches the payload frames that follow a head."""


class EncodeFrames(Protocol[M_contra]):
    """The type of `encode_frames`, whose threshold is optional."""

    def __call__(self, msg: M_contra, threshold: int = ...) -> list[Buffer]: ...


class Codec(Generic[M]):
    """Encodes and decodes the messages of one group.

    Attributes:
        group: the group's name.
        receiver: the process that reads its messages.
        version: the group's version.
        fingerprint: SHA-256 of its wire layout, 64 hex digits; peers with the same one understand
            each other.
        engine: what serves the calls, `native` or `python`; both give the same bytes, messages
            and errors.
        encode: message to bytes; raises EncodeError.
        decode: bytes to message; raises DecodeError.
        encode_frames: message to a head and payload frames; raises EncodeError.
        decode_frames: a head and payload frames to a message; raises DecodeError.
        decode_received: the same, for a reader that has the head and can fetch what follows;
            raises DecodeError.
        records: the description table of its structs and messages, by class.
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
        self.records = records
        table_codec = TableCodec(
            group, version, fingerprint, records, former, removed or {}
        )
        # Also where it does not serve: tests and benchmarks compare the two.
        self._python = PythonEngine(table_codec, encoders, decoders)
        native = native_engine.make(table_codec)
        engine = native or self._python
        self.engine = "native" if native else "python"
        self.encode: Callable[[M], bytes] = engine.encode
        self.decode: Callable[[Buffer], M] = engine.decode
        self.encode_frames: EncodeFrames[M] = engine.encode_frames
        self.decode_frames: Callable[[Sequence[Buffer]], M] = engine.decode_frames
        self.decode_received: Callable[[Buffer, Fetch], M] = engine.decode_received
        self._encode_for = engine.encode_for
        self._table_codec = table_codec

    def __repr__(self) -> str:
        return (
            f"<Codec of group {self.group!r}, version {self.version}, "
            f"fingerprint {self.fingerprint[:12]}, engine {self.engine}>"
        )

    def encoder(self, threshold: int) -> Callable[[M], bytes | list[Buffer]]:
        """Return a function that encodes a message to its only frame, or else to its frames.

        Args:
            threshold: bytes from which a payload is given a frame of its own.
        """
        return partial(self._encode_for, threshold)

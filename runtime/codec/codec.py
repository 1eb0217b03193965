"""The codec of one group: its calls, served by the compiled engine or by the Python one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from . import native_engine, table
from .frames import DEFAULT_THRESHOLD, Buffer
from .python_engine import Layout, PythonEngine
from .wire import Decoders, Encoders

M = TypeVar("M")
M_co = TypeVar("M_co", covariant=True)
M_contra = TypeVar("M_contra", contravariant=True)


class EncodeFrames(Protocol[M_contra]):
    """The type of `encode_frames`, whose threshold is optional."""

    def __call__(self, msg: M_contra, threshold: int = ...) -> list[Buffer]: ...


class DecodeReceived(Protocol[M_co]):
    """The type of `decode_received`."""

    def __call__(
        self, head: Buffer, rest: Callable[[], Sequence[Buffer]], /
    ) -> M_co: ...


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
        layout = Layout(
            group=group,
            version=version,
            fingerprint=fingerprint,
            records=records,
            encoders=encoders,
            decoders=decoders,
            removed=dict(removed or {}),
            former=former,
        )
        self._python = PythonEngine(layout)
        native = native_engine.make(layout, self._python)
        engine = self._python if native is None else native
        self._native = native
        self.engine = "python" if native is None else "native"
        self.encode: Callable[[M], bytes] = engine.encode
        self.decode: Callable[[Buffer], M] = engine.decode
        self._has_payloads = layout.has_payloads
        self.encode_frames: EncodeFrames[M] = (
            engine.encode_frames
            if self._has_payloads
            else _make_encode_single(self.encode)
        )
        self.decode_frames: Callable[[Sequence[Buffer]], M] = engine.decode_frames
        self.decode_received: DecodeReceived[M] = engine.decode_received

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
        if not self._has_payloads:
            return self.encode
        if self._native is not None:
            return partial(self._native.encode_for, threshold)
        encode_frames = self.encode_frames

        def encode(msg: M) -> bytes | list[Buffer]:
            """Encode a message of the group.

            Raises:
                EncodeError: a value does not fit its field; `path` names it.
            """
            return encode_frames(msg, threshold)

        return encode


def _make_encode_single(encode: Callable[[M], bytes]) -> EncodeFrames[M]:
    def encode_frames(msg: M, threshold: int = DEFAULT_THRESHOLD) -> list[Buffer]:
        """Encode a message into its head: no message of the group has a payload.

        Raises:
            EncodeError: a value does not fit its field; `path` names it.
        """
        return [encode(msg)]

    return encode_frames

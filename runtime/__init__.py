"""The runtime: codecs, and queues that carry their messages.

`import msgen.runtime` loads the codec; queues are in `msgen.runtime.queues`.
"""

from .codec import Codec
from .errors import (
    DecodeError,
    EncodeError,
    MsgenError,
    NotAMessage,
    QueueClosed,
    QueueEmpty,
    QueueFull,
    SchemaMismatch,
    UnknownMessage,
)

__all__ = [
    "Codec",
    "DecodeError",
    "EncodeError",
    "MsgenError",
    "NotAMessage",
    "QueueClosed",
    "QueueEmpty",
    "QueueFull",
    "SchemaMismatch",
    "UnknownMessage",
]

"""The runtime: codecs, queues and broadcasts that carry their messages.

`import msgen.runtime` loads the codec and the errors; queues are in `msgen.runtime.queues`, the
broadcast of steps in `msgen.runtime.broadcast`, addresses in `msgen.runtime.sockets`, inference
workers in `msgen.runtime.worker` and `msgen.runtime.launch`.

`ENGINE` says what serves the codecs of this process, `native` or `python`; the environment variable
`MSGEN_CODEC` chooses, and `msgen.runtime.codec.native_engine.why_not` says why it is Python.
"""

from .codec import ENGINE, Codec
from .errors import (
    AddressError,
    AddressInUse,
    BroadcastError,
    DecodeError,
    EncodeError,
    InsecureAddress,
    MessageTooLarge,
    MsgenError,
    NotAMessage,
    PingTimeout,
    PublisherLost,
    QueueClosed,
    QueueEmpty,
    QueueFull,
    RankLost,
    RankRefused,
    RankStalled,
    SchemaMismatch,
    SecurityError,
    StepDecodeError,
    StepGap,
    SubscribersMissing,
    UnknownMessage,
    WorkerError,
    WorkersNotReady,
    WrongProcess,
    WrongThread,
)

__all__ = [
    "ENGINE",
    "AddressError",
    "AddressInUse",
    "BroadcastError",
    "Codec",
    "DecodeError",
    "EncodeError",
    "InsecureAddress",
    "MessageTooLarge",
    "MsgenError",
    "NotAMessage",
    "PingTimeout",
    "PublisherLost",
    "QueueClosed",
    "QueueEmpty",
    "QueueFull",
    "RankLost",
    "RankRefused",
    "RankStalled",
    "SchemaMismatch",
    "SecurityError",
    "StepDecodeError",
    "StepGap",
    "SubscribersMissing",
    "UnknownMessage",
    "WorkerError",
    "WorkersNotReady",
    "WrongProcess",
    "WrongThread",
]

"""The runtime: codecs, queues and broadcasts that carry their messages.

`import msgen.runtime` loads the codec and the errors; queues are in `msgen.runtime.queues`, the
broadcast of steps in `msgen.runtime.broadcast`, addresses in `msgen.runtime.addresses`, inference
workers in `msgen.runtime.worker` and `msgen.runtime.launch`.
"""

from .codec import Codec
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

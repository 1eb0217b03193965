"""Queues: a codec and a ZeroMQ socket, as thin as that.

PUSH and PULL carry each message to one of the pulling ends; PUB and SUB carry each to all. All of
them are bounded, and a full queue makes its sender wait: nothing is dropped. A queue belongs to
the thread that made it. `docs/runtime.md` explains each promise.
"""

from msgen.runtime.sockets.carriers import MAX_LENT_BYTES

from .asynchronous import ZmqAsyncPullQueue, ZmqAsyncPushQueue
from .blocking import ZmqPubQueue, ZmqPullQueue, ZmqPushQueue, ZmqSubQueue
from .endpoint import HIGH_WATER_MARK, LINGER_S, MAX_MESSAGE_BYTES, QueueStats
from .sender import Frame, Raw

__all__ = [
    "HIGH_WATER_MARK",
    "LINGER_S",
    "MAX_LENT_BYTES",
    "MAX_MESSAGE_BYTES",
    "Frame",
    "QueueStats",
    "Raw",
    "ZmqAsyncPullQueue",
    "ZmqAsyncPushQueue",
    "ZmqPubQueue",
    "ZmqPullQueue",
    "ZmqPushQueue",
    "ZmqSubQueue",
]

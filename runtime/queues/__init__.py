"""Queues: a codec and a ZeroMQ socket, as thin as that.

In come messages of one group, out go messages of it at the other end. PUSH and PULL carry each to
one of the pulling ends; PUB and SUB carry each to all. All of them are bounded, and a full queue
makes its sender wait: nothing is dropped. A queue belongs to the thread that made it.

An `endpoint` is a socket with an owner. A `sender` and a `receiver` turn messages into `frames` on
it and back, and hold all that blocking and asynchronous queues share; `blocking`, `pubsub` and
`asynchronous` add how they wait, and the calls. They import `msgen.runtime.codec`,
`msgen.runtime.sockets` and the errors. `docs/runtime.md` explains each promise.
"""

from .asynchronous import ZmqAsyncPullQueue, ZmqAsyncPushQueue
from .blocking import ZmqPullQueue, ZmqPushQueue
from .endpoint import HIGH_WATER_MARK, LINGER_S, MAX_MESSAGE_BYTES, QueueStats
from .frames import Frame, Raw
from .pubsub import ZmqPubQueue, ZmqSubQueue
from .sender import MAX_LENT_BYTES

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

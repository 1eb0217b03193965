"""Inference workers: what runs in the process of one rank.

Steps come in from a queue (rank 0) or a broadcast (the others), are decoded, staged and handed to
the user's handler; rank 0 sends the replies. It imports broadcast, queues, codec and sockets.
"""

from .handler import InferenceHandler, WorkerContext
from .loop import InferenceWorker
from .quarantine import DeadLetter, read_dead_letters

__all__ = [
    "DeadLetter",
    "InferenceHandler",
    "InferenceWorker",
    "WorkerContext",
    "read_dead_letters",
]

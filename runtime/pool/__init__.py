"""Supervision: the processes of all ranks, from outside.

A pool starts ranks, waits for them, watches over them and ends them. It imports the worker, for
the settings and events of ranks, and what lies below it.
"""

from .pool import WorkerPool

__all__ = ["WorkerPool"]

"""Supervision: the processes of all ranks, from outside.

A pool starts ranks, waits for them, watches over them and ends them. It imports the worker for what
ranks are told and tell, and the rooms below it.
"""

from .pool import WorkerPool

__all__ = ["WorkerPool"]

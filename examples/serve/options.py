"""What can be chosen, and how a run of the server ends; light, for the command line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ServeOptions:
    """What can be chosen; the command line says what each means."""

    model: str | None
    host: str
    port: int
    ranks: int
    device: str
    context: int | None
    cache_tokens: int
    max_running: int
    max_waiting: int
    max_step_tokens: int
    threads: int | None
    ping_timeout: float
    step_timeout: float


class ServerFailed(Exception):
    """A process of the server ended, or could not start; the text says which, and why."""

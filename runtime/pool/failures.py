"""Failures of ranks as errors: who, what, in which step, and what to do about it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from typing import Any

from msgen.runtime.errors import WorkerError, WorkersNotReady

from .rank import RankHandle


def failed_error(
    handle: RankHandle, decode: Callable[[list[list[bytes]]], tuple[Any, ...]]
) -> WorkerError:
    """Return the error of a rank that has sent one."""
    assert handle.failure is not None
    type_, message, trace, step, frames = handle.failure
    where = f"failed in step {step}" if step is not None else f"failed {handle.doing}"
    return WorkerError(
        f"rank {handle.rank} {where}: {type_}: {message}\n\n{trace}",
        handle.rank,
        type_,
        message,
        trace,
        decode(frames),
        step,
    )


def exited_error(handle: RankHandle) -> WorkerError:
    """Return the error of a rank that has ended without a word."""
    code = handle.exit_code
    running = handle.clock.running
    if code is not None and code < 0:
        message = f"was killed by {_signal_name(-code)}"
        if code == -signal.SIGKILL:
            message += "; if nobody did that, the machine ran out of memory"
    elif handle.has_begun:
        message = f"ended with exit code {code}; a handler must not end its process"
    else:
        message = (
            f"ended with exit code {code}; the program that starts a pool is imported by the ranks, so "
            "it needs: if __name__ == '__main__'"
        )
    return WorkerError(
        f"rank {handle.rank}, {handle.doing}, {message}",
        handle.rank,
        "Exited",
        message,
        step=None if running is None else running[0],
        exit_code=code,
    )


def timeout_error(
    late: Sequence[tuple[RankHandle, int, float]], limit: float
) -> WorkerError:
    """Return the error of a step that takes too long.

    Args:
        late: the ranks that are in it, which step it is for each, and its seconds so far.
        limit: seconds that it may take.
    """
    # A rank that hangs keeps the others waiting in a collective; it may be a step behind them.
    first, step, _ = min(late, key=lambda each: each[1])
    details = ", ".join(
        f"rank {handle.rank} has been in step {number} for {seconds:.1f} s"
        for handle, number, seconds in late
    )
    message = f"{details}; the step timeout is {limit:g} s"
    stacks = "\n".join(
        f"rank {handle.rank}:\n{handle.stacks()}" for handle, _, _ in late
    )
    return WorkerError(
        f"{message}\n\n{stacks}", first.rank, "StepTimeout", message, stacks, step=step
    )


def out_of_step_error(handle: RankHandle, step: int, other: RankHandle) -> WorkerError:
    """Return the error of a rank whose handler raised, and answered, where another did not."""
    message = (
        f"rank {handle.rank} answered an error of step {step} that rank {other.rank} did not have, so "
        f"they are out of step: {handle.answered[step]}; on_error must raise what does not follow "
        "from the messages alone"
    )
    return WorkerError(message, handle.rank, "OutOfStep", message, step=step)


def not_ready_error(handles: Sequence[RankHandle], timeout: float) -> WorkersNotReady:
    """Return the error of a start that took too long, with how far each rank is."""
    missing = [handle for handle in handles if not handle.ready]
    details = "; ".join(handle.where() for handle in missing)
    stacks = "\n".join(
        f"rank {handle.rank}:\n{text}"
        for handle in missing
        if (text := handle.stacks())
    )
    return WorkersNotReady(
        f"not all ranks were ready within {timeout:g} s: {details}",
        tuple(handle.rank for handle in missing),
        stacks,
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"

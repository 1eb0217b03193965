"""Timing of rivals side by side, so that a slow spell of the machine meets all of them alike."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from statistics import median
from time import perf_counter
from typing import Any, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


@dataclass(frozen=True)
class Task:
    """A call to time: a function of one argument, called as it is, and that argument."""

    call: Callable[[Any], object]
    argument: Any


def in_turns(
    keys: Sequence[K], rounds: int, measure: Callable[[K], T]
) -> dict[K, list[T]]:
    """Measure every key once a round, in a new order each time; return one sample a round.

    The garbage collector runs between rounds only.
    """
    samples: dict[K, list[T]] = {key: [] for key in keys}
    order = list(keys)
    shuffle = random.Random(0).shuffle
    for _ in range(rounds):
        shuffle(order)
        with collector_paused():
            for key in order:
                samples[key].append(measure(key))
    return samples


def interleave(
    tasks: Mapping[K, Task], *, rounds: int, slice_s: float = 0.01
) -> dict[K, list[float]]:
    """Time tasks of this process in turns.

    Args:
        tasks: what to time, by any key.
        rounds: how often.
        slice_s: seconds of one timing, filled with as many calls as fit; 0 for a single call,
            without a warm-up.

    Returns:
        Each task's seconds per call, one figure a round.
    """
    counts = {key: _calibrate(task, slice_s) for key, task in tasks.items()}
    return in_turns(
        list(tasks), rounds, lambda key: _elapsed(tasks[key], counts[key]) / counts[key]
    )


def ratios(samples: Sequence[float], base: Sequence[float]) -> list[float]:
    """Divide the samples of each round by one another."""
    return [one / other for one, other in zip(samples, base)]


def ratio(samples: Sequence[float], base: Sequence[float]) -> float:
    """Return the median of the rounds' ratios.

    On a busy machine it varies much less than the ratio of two medians.
    """
    return median(ratios(samples, base))


def ratio_and_range(each: Sequence[float]) -> dict[str, float]:
    """Return the figures of a row: the median of ratios, the least and the greatest."""
    return {
        "ratio": median(each),
        "least_ratio": min(each),
        "greatest_ratio": max(each),
    }


def _calibrate(task: Task, slice_s: float) -> int:
    """Find how many calls fill a slice; warms the task up, too."""
    if not slice_s:
        return 1
    count = 1
    with collector_paused():
        while (elapsed := _elapsed(task, count)) < slice_s / 4:
            count *= 2
    return max(1, round(count * slice_s / elapsed))


def _elapsed(task: Task, count: int) -> float:
    call, argument = task.call, task.argument
    start = perf_counter()
    for _ in repeat(None, count):
        call(argument)
    return perf_counter() - start


@contextmanager
def collector_paused() -> Iterator[None]:
    """Collect garbage now, and not again before the block is left."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()

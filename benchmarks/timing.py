"""Timing of rival calls side by side, so that a ratio says more than the machine's mood."""

from __future__ import annotations

import gc
import platform
import random
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import repeat
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, TypeVar

K = TypeVar("K", bound=Hashable)

PACKAGES = ("torch", "numpy", "msgpack", "msgspec", "protobuf")


@dataclass(frozen=True)
class Task:
    """A call to time: a function of one argument, called as it is, and that argument."""

    call: Callable[[Any], object]
    argument: Any


def interleave(
    tasks: Mapping[K, Task], *, rounds: int, slice_s: float = 0.01
) -> dict[K, list[float]]:
    """Time tasks in turns.

    Each round times every task once, in a new order, so that a slow spell of the machine meets
    all of them alike. The garbage collector runs between rounds only.

    Args:
        tasks: what to time, by any key.
        rounds: how often.
        slice_s: seconds of one timing, filled with as many calls as fit; 0 for a single call, without
            a warm-up.

    Returns:
        Each task's seconds per call, one figure a round.
    """
    counts = {key: _calibrate(task, slice_s) for key, task in tasks.items()}
    samples: dict[K, list[float]] = {key: [] for key in tasks}
    order = list(tasks)
    shuffle = random.Random(0).shuffle
    for _ in range(rounds):
        shuffle(order)
        with _collector_paused():
            for key in order:
                count = counts[key]
                samples[key].append(_elapsed(tasks[key], count) / count)
    return samples


def ratio(times: Sequence[float], base: Sequence[float]) -> float:
    """Say how many times longer one task takes than another.

    Times of one round are divided by each other before the median is taken: on a busy machine
    that varies much less than the ratio of two medians.
    """
    return median(one / other for one, other in zip(times, base))


def _calibrate(task: Task, slice_s: float) -> int:
    """Find how many calls fill a slice; warms the task up, too."""
    if not slice_s:
        return 1
    count = 1
    with _collector_paused():
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
def _collector_paused() -> Iterator[None]:
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def machine_facts(packages: Sequence[str] = PACKAGES) -> dict[str, str]:
    """Return what figures depend on: the CPU, and the versions of Python and of packages."""
    facts = {"CPU": _cpu_model(), "Python": platform.python_version()}
    for package in packages:
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            facts[package] = "none"
    return facts


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()

"""Staging of a step's tensors against one copy for each tensor; needs a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from msgen.runtime.codec import table
from msgen.runtime.codec.codec import Codec
from msgen.runtime.worker.staging import CudaDevice, StagedFields, Staging
from timing import Task, interleave, ratio


class Request:
    """A message with one tensor for the device."""

    __slots__ = ("ids",)

    def __init__(self, ids: torch.Tensor) -> None:
        self.ids = ids


@dataclass
class StagingRow:
    """Times of one step; the ratio is that of one copy per tensor divided by staging's."""

    tensors: int
    bytes_each: int
    staged_us: float
    each_us: float
    ratio: float


def measure_staging(rounds: int) -> list[StagingRow]:
    """Measure steps of several sizes; none without a GPU."""
    if not torch.cuda.is_available():
        return []
    device = torch.device("cuda", 0)
    staging = Staging(StagedFields(_codec()), CudaDevice(device))
    rows = []
    for count, items in ((1, 1024), (8, 1024), (64, 1024), (64, 16), (8, 262_144)):
        tensors = [torch.arange(items, dtype=torch.int32) for _ in range(count)]
        tasks = {
            "staged": Task(_staged(staging, device), tensors),
            "each": Task(_each(device), tensors),
        }
        times = interleave(tasks, rounds=rounds)
        rows.append(
            StagingRow(
                count,
                items * 4,
                median(times["staged"]) * 1e6,
                median(times["each"]) * 1e6,
                ratio(times["each"], times["staged"]),
            )
        )
    return rows


def _staged(
    staging: Staging, device: torch.device
) -> Callable[[list[torch.Tensor]], None]:
    def copy(tensors: list[torch.Tensor]) -> None:
        staging([Request(each) for each in tensors])
        torch.cuda.synchronize(device)

    return copy


def _each(device: torch.device) -> Callable[[list[torch.Tensor]], None]:
    def copy(tensors: list[torch.Tensor]) -> None:
        for request in [Request(each) for each in tensors]:
            request.ids = request.ids.to(device)
        torch.cuda.synchronize(device)

    return copy


def _codec() -> Codec[Any]:
    """Return a codec whose one message has a tensor for the device."""
    ids = table.Field("ids", table.Tensor("int32", ("seq",), device="worker"))
    return Codec(
        group="bench",
        receiver="worker",
        version=1,
        fingerprint="0" * 64,
        records={Request: table.Record("Request", (ids,), tag=1)},
        encoders={},
        decoders={},
    )


def print_staging(rows: Sequence[StagingRow]) -> None:
    print("\nstaging: the tensors of a step to the GPU, until they are there")
    if not rows:
        print("  not measured: this machine has no GPU that torch can use")
        return
    print(
        f"  {'tensors':>8}{'bytes each':>12}{'staged us':>11}{'one by one us':>15}{'x':>7}"
    )
    for row in rows:
        print(
            f"  {row.tensors:>8}{row.bytes_each:>12,}{row.staged_us:>11.1f}{row.each_us:>15.1f}"
            f"{row.ratio:>7.2f}"
        )

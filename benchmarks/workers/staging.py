"""Staging of a step's tensors against one copy for each tensor; needs a GPU."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from msgen.runtime.codec import table
from msgen.runtime.codec.codec import Codec
from msgen.runtime.worker.staging import CudaDevice, StagedFields, Staging

from ..output import Report, Row
from ..timing import Task, interleave, ratio


class Request:
    """A message with one tensor for the device."""

    __slots__ = ("ids",)

    def __init__(self, ids: torch.Tensor) -> None:
        self.ids = ids


_COLUMNS = {
    "tensors": "{tensors}",
    "bytes each": "{bytes_each:,}",
    "staged us": "{staged_us:.1f}",
    "one by one us": "{each_us:.1f}",
    "x": "{ratio:.2f}",
}


def measure_staging(report: Report) -> None:
    """Measure steps of several sizes; none without a GPU."""
    if not torch.cuda.is_available():
        print("\nstaging: not measured, this machine has no GPU that torch can use")
        return
    device = torch.device("cuda", 0)
    staging = Staging(StagedFields(_codec()), CudaDevice(device))
    rows = []
    for count, items in ((1, 1024), (8, 1024), (64, 1024), (64, 16), (8, 262_144)):
        tensors = [torch.arange(items, dtype=torch.int32) for _ in range(count)]
        tasks = {
            "staged": Task(_staged(staging, device), tensors),
            "each": Task(_each(device), tensors),
        }
        times = interleave(tasks, rounds=report.rounds)
        row: Row = {"tensors": count, "bytes_each": items * 4}
        row |= {f"{way}_us": median(each) * 1e6 for way, each in times.items()}
        rows.append(row | {"ratio": ratio(times["each"], times["staged"])})
    title = "staging: the tensors of a step to the GPU, until they are there"
    report.table("staging", title, _COLUMNS, rows)


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

"""Staging to a real GPU: values, and the order of copies and kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from building import built, write_schema
from msgen.runtime.codec.dtypes import DTYPES
from msgen.runtime.worker.staging import (
    CudaDevice,
    StagedFields,
    Staging,
    choose_staging,
)

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(
        not torch.cuda.is_available(),
        reason="this machine has no GPU that torch can use",
    ),
]

SCHEMA = """
group: frames
receiver: scheduler
messages:
  FrameMsg:
    tag: 1
    fields:
      one: {type: "tensor[any, *]", device: worker}
      many: {type: "list[tensor[int64, _]]", device: worker}
      kept: tensor[int32, _]
"""


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("frames")
    schema = write_schema(folder / "schema", {"frames.yaml": SCHEMA})
    with built(folder, schema) as modules:
        yield modules.module("frames")


def message(frames: Any, one: torch.Tensor, *many: torch.Tensor) -> Any:
    kept = torch.arange(3, dtype=torch.int32)
    return frames.decode(frames.encode(frames.FrameMsg(one, list(many), kept)))


@pytest.mark.parametrize("name", sorted(DTYPES))
def test_every_dtype_arrives_on_the_gpu(frames: Any, name: str) -> None:
    dtype = DTYPES[name]
    shapes = [(), (0,), (3,), (2, 3)]
    tensors = [torch.randint(0, 2, shape).to(dtype) for shape in shapes]
    step = [message(frames, each) for each in tensors]
    choose_staging(frames.CODEC, torch.device("cuda", 0))(step)
    for each, tensor in zip(step, tensors):
        assert each.one.device == torch.device("cuda", 0)
        assert each.kept.device.type == "cpu"
        assert each.one.shape == tensor.shape
        there, here = each.one.cpu().reshape(-1), tensor.reshape(-1)
        assert there.view(torch.uint8).equal(here.view(torch.uint8))


def test_kernels_wait_for_the_copy_and_buffers_for_their_copies(frames: Any) -> None:
    """Many steps in a row without a wait: each kernel must see its own step's values."""
    staging = Staging(StagedFields(frames.CODEC), CudaDevice(torch.device("cuda", 0)))
    size = 1_000_000
    sums = []
    for number in range(200):
        numbers = torch.full((size,), number)
        step = [message(frames, torch.zeros(1), numbers, numbers + 1)]
        staging(step)
        first, second = step[0].many
        sums.append((first + second).sum())
    expected = [size * (2 * number + 1) for number in range(200)]
    assert [int(each) for each in sums] == expected


def test_memory_that_was_freed_is_not_written_while_a_kernel_reads_it(
    frames: Any,
) -> None:
    staging = Staging(StagedFields(frames.CODEC), CudaDevice(torch.device("cuda", 0)))
    size = 4_000_000
    results = []
    for number in range(50):
        step = [message(frames, torch.full((size,), float(number)))]
        staging(step)
        # Keeps the current stream busy, so that the kernel below runs after its tensor is freed.
        torch.cuda._sleep(10_000_000)  # type: ignore[no-untyped-call]
        results.append(step[0].one.sum())
    expected = [float(number) * size for number in range(50)]
    assert [float(each) for each in results] == pytest.approx(expected)


def test_a_step_over_the_limit_arrives_in_parts(frames: Any) -> None:
    device = CudaDevice(torch.device("cuda", 0))
    staging = Staging(StagedFields(frames.CODEC), device, max_bytes=1 << 20)
    many = [torch.arange(size) for size in (50_000, 90_000, 200_000, 10)]
    step = [message(frames, torch.zeros(1), *many)]
    staging(step)
    for there, here in zip(step[0].many, many):
        assert there.cpu().equal(here)

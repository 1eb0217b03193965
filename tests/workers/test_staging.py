"""Staging: which tensors go to the device, how they are packed, and when memory is used again.

The device here is the CPU by another name: its copies go through the same path as those to a GPU,
which `tests/cuda` checks on a machine that has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from building import built, write_schema
from msgen.generated import backend
from msgen.runtime.codec.dtypes import DTYPES
from msgen.runtime.worker.staging import Done, StagedFields, Staging, choose_staging

SCHEMA = """
group: images
receiver: scheduler
messages:
  PlainMsg:
    tag: 1
    fields:
      uid: int
      ids: tensor[int32, seq]
  PicturesMsg:
    tag: 2
    fields:
      ids: tensor[int32, seq]
      one: {type: "tensor[any, *]", device: worker}
      many: {type: "list[tensor[float32, _, _]]", device: worker}
      maybe: {type: "tensor[int64, n]?", device: worker}
      pair: {type: "tuple[tensor[uint8, _], int, tensor[bool, _]]", device: worker}
      named: {type: "dict[str, tensor[bfloat16, _]]", device: worker}
      choice: {type: "tensor[float64, _] | str", device: worker}
      parts: list[Part]
      plain: Holder
structs:
  Part:
    fields:
      mask: {type: "tensor[bool, _]", device: worker}
      kept: tensor[int32, _]
      next: Part?
  Holder:
    fields:
      kept: tensor[int32, _]
"""


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("images")
    schema = write_schema(folder / "schema", {"images.yaml": SCHEMA})
    with built(folder, schema) as modules:
        yield modules.module("images")


class Copy:
    """A copy that is done once somebody waits for it."""

    def __init__(self, device: OtherCpu, begin: int) -> None:
        self._device = device
        self._begin = begin

    def synchronize(self) -> None:
        self._device.under_way.discard(self._begin)


class OtherCpu:
    """A device whose memory is the CPU's: each copy is a copy, and none ends by itself."""

    def __init__(self) -> None:
        self.copied: list[int] = []
        self.allocated: list[int] = []
        self.alone = 0
        self.under_way: set[int] = set()

    def allocate(self, size: int) -> torch.Tensor:
        self.allocated.append(size)
        # Whatever is read and was not written shows.
        return torch.full((size,), 0xA5, dtype=torch.uint8)

    def copy(self, host: torch.Tensor) -> tuple[torch.Tensor, Done]:
        begin = host.data_ptr()
        assert begin not in self.under_way, (
            "memory was filled while it was being copied"
        )
        self.under_way.add(begin)
        self.copied.append(host.numel())
        return host.clone(), Copy(self, begin)

    def copy_alone(self, tensor: torch.Tensor) -> torch.Tensor:
        self.alone += 1
        return tensor.clone()


def part(images: Any, size: int, following: Any = None) -> Any:
    mask = torch.arange(size) % 3 == 0
    return images.Part(mask, torch.arange(size, dtype=torch.int32), following)


def message(images: Any, size: int) -> Any:
    """A message with a tensor in every place; decoded, as a worker gets it."""
    pictures = images.PicturesMsg(
        ids=torch.arange(size, dtype=torch.int32),
        one=torch.randn(2, size, 3).to(torch.float16),
        many=[torch.randn(size, 2), torch.randn(0, 5), torch.randn(1, 1)],
        maybe=torch.arange(size),
        pair=(
            torch.arange(size, dtype=torch.uint8),
            7,
            torch.ones(1, dtype=torch.bool),
        ),
        named={"a": torch.randn(size).bfloat16(), "b": torch.randn(1).bfloat16()},
        choice=torch.randn(size, dtype=torch.float64),
        parts=[part(images, size, part(images, 1)), part(images, 2)],
        plain=images.Holder(torch.zeros(3, dtype=torch.int32)),
    )
    return images.decode(images.encode(pictures))


def tensors_of(value: Any, found: list[torch.Tensor]) -> list[torch.Tensor]:
    """All tensors inside a value, wherever they are."""
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, (list, tuple)):
        for each in value:
            tensors_of(each, found)
    elif isinstance(value, dict):
        tensors_of(list(value.values()), found)
    elif hasattr(value, "__slots__"):
        for name in value.__slots__:
            tensors_of(getattr(value, name), found)
    return found


def staged(images: Any, message: Any) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []

    def note(tensor: torch.Tensor) -> torch.Tensor:
        found.append(tensor)
        return tensor

    StagedFields(images.CODEC).visit([message], note)
    return found


def test_only_tensors_of_fields_that_say_so_are_staged_nested_ones_too(
    images: Any,
) -> None:
    each = message(images, 10)
    kept = [each.ids, each.parts[0].kept, each.parts[0].next.kept, each.parts[1].kept]
    kept.append(each.plain.kept)
    everything = tensors_of(each, [])
    wanted = staged(images, each)
    assert len(everything) == len(wanted) + len(kept)
    assert {id(one) for one in everything} == {id(one) for one in [*wanted, *kept]}


def test_messages_hold_equal_tensors_on_the_device_after_one_copy(images: Any) -> None:
    device = OtherCpu()
    staging = Staging(StagedFields(images.CODEC), device)
    step = [message(images, 10), images.PlainMsg(1, torch.ones(2, dtype=torch.int32))]
    step += [message(images, 33), message(images, 0)]
    copies = [images.decode(images.encode(each)) for each in step]
    before = [tensors_of(each, []) for each in step]
    plain = step[1].ids
    staging(step)
    assert step == copies
    assert step[1].ids is plain
    assert len(device.copied) == 1
    for each, old in zip(step, before):
        new = tensors_of(each, [])
        moved = [one for one, other in zip(new, old) if one is not other]
        assert len(moved) == (0 if each is step[1] else len(staged(images, each)))
        assert all(one.data_ptr() % 64 == 0 for one in moved if one.numel())
        storages = {one.untyped_storage().data_ptr() for one in moved}
        assert len(storages) <= 1


@pytest.mark.parametrize("name", sorted(DTYPES))
def test_every_dtype_arrives(images: Any, name: str) -> None:
    dtype = DTYPES[name]
    tensors = [
        torch.randint(0, 2, shape).to(dtype) for shape in ((), (0,), (3,), (2, 3))
    ]
    step = [images.decode(images.encode(with_one(images, each))) for each in tensors]
    Staging(StagedFields(images.CODEC), OtherCpu())(step)
    for each, tensor in zip(step, tensors):
        assert each.one.dtype is dtype
        assert each.one.shape == tensor.shape
        view = torch.uint8
        assert each.one.reshape(-1).view(view).equal(tensor.reshape(-1).view(view))


def with_one(images: Any, tensor: torch.Tensor) -> Any:
    found = message(images, 0)
    found.one = tensor
    return found


def test_memory_is_filled_again_only_when_its_copy_is_done(images: Any) -> None:
    """Two buffers take turns, so a step need not wait for the copy of the step before."""
    device = OtherCpu()
    staging = Staging(StagedFields(images.CODEC), device)
    for size in (5, 6, 7, 8):
        step = [message(images, size)]
        copies = [images.decode(images.encode(each)) for each in step]
        staging(step)
        assert step == copies
    assert len(device.under_way) == 2
    assert len(device.allocated) == 2


def test_buffers_grow_by_need_and_stay_within_the_limit(images: Any) -> None:
    device = OtherCpu()
    limit = 3 << 20
    staging = Staging(StagedFields(images.CODEC), device, max_bytes=limit)
    for size in (10, 200_000, 10, 10, 300_000, 10):
        one = torch.full((size,), size, dtype=torch.float64)
        step = [with_one(images, one)]
        staging(step)
        assert step[0].one.equal(one)
    assert device.allocated == [1 << 20, 2 << 20, 3 << 20]


def test_a_step_with_more_than_the_limit_is_copied_in_parts(images: Any) -> None:
    device = OtherCpu()
    limit = 1 << 20
    staging = Staging(StagedFields(images.CODEC), device, max_bytes=limit)
    sizes = [50_000, 60_000, 100_000, 40_000, 200_000, 1, 131_072]
    step = [with_one(images, torch.arange(size, dtype=torch.int64)) for size in sizes]
    staging(step)
    for each, size in zip(step, sizes):
        assert each.one.equal(torch.arange(size, dtype=torch.int64))
    assert len(device.copied) >= 3
    assert max(device.copied) <= limit
    assert device.alone == 1  # 200,000 numbers of 8 bytes fit into no buffer.


def test_a_step_without_such_tensors_copies_nothing(images: Any) -> None:
    device = OtherCpu()
    step = [images.PlainMsg(1, torch.ones(2, dtype=torch.int32))]
    Staging(StagedFields(images.CODEC), device)(step)
    Staging(StagedFields(images.CODEC), device)([])
    assert device.copied == device.allocated == []


def test_on_the_cpu_tensors_stay_where_they_are(images: Any) -> None:
    step = [message(images, 10)]
    before = tensors_of(step[0], [])
    choose_staging(images.CODEC, torch.device("cpu"))(step)
    assert all(one is other for one, other in zip(tensors_of(step[0], []), before))


def test_a_group_without_such_fields_needs_no_staging() -> None:
    assert not StagedFields(backend.CODEC)
    choose_staging(backend.CODEC, torch.device("cuda", 0))([])

"""Staging: the tensors of a step that belong on the GPU get there by one copy.

Each copy to a GPU costs a launch, and one from ordinary memory also holds the program up until it is
done. So all tensors of a step with `device: worker` are packed into one pinned buffer, at offsets that
every dtype and kernel is content with, and copied together, on a stream of its own, while the program
goes on. The messages then hold views of the copy on the device.

    decoded tensors --memmove--> pinned buffer --one copy, side stream--> device memory --> views
                                     |                                        |
                        reused once its copy is done          the current stream waits for the copy

On the CPU nothing is staged: tensors stay where they are, uncopied.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import torch
from msgen.runtime.codec import table
from msgen.runtime.codec.arena import ALIGNMENT
from msgen.runtime.codec.codec import Codec

MAX_STAGING_BYTES = 256 << 20
"""Bytes of each of the two pinned buffers, at most: pinned memory is taken from all other processes.

A step that has more is copied in parts."""

_LEAST_BYTES = 1 << 20
"""A first buffer has room for the prompts of an ordinary step, so that it seldom grows."""
_BUFFERS = 2
"""While one is copied, the next step fills the other."""

Visit: TypeAlias = Callable[[torch.Tensor], torch.Tensor]
"""Takes a tensor of a message and returns what takes its place."""


class Done(Protocol):
    """A copy that is under way."""

    def synchronize(self) -> None:
        """Wait until it is done."""


class Device(Protocol):
    """What staging needs of a device."""

    def allocate(self, size: int) -> torch.Tensor:
        """Return so many bytes of host memory that the device can copy from by itself."""

    def copy(self, host: torch.Tensor) -> tuple[torch.Tensor, Done]:
        """Begin to copy bytes to the device; what is launched from now on waits for it."""

    def copy_alone(self, tensor: torch.Tensor) -> torch.Tensor:
        """Copy one tensor that no buffer has room for."""


class CudaDevice:
    """A GPU, with a stream of its own for copies.

    Args:
        device: which one.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def allocate(self, size: int) -> torch.Tensor:
        return torch.empty(size, dtype=torch.uint8, device="cpu", pin_memory=True)

    def copy(self, host: torch.Tensor) -> tuple[torch.Tensor, Done]:
        current = torch.cuda.current_stream(self._device)
        # Allocated for the side stream, which writes it: memory that kernels of the current stream
        # may still use is not given to it.
        with torch.cuda.stream(self._stream):
            there = torch.empty(host.numel(), dtype=torch.uint8, device=self._device)
            there.copy_(host, non_blocking=True)
            done = torch.cuda.Event()  # type: ignore[no-untyped-call]
            done.record(self._stream)
        current.wait_event(done)
        # Once it is freed, it is not used again before the current stream is done with it.
        there.record_stream(current)
        return there, done

    def copy_alone(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(self._device)


class _Buffer:
    """Host memory that is filled, copied, and filled again."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._memory: torch.Tensor | None = None
        self._copy: Done | None = None

    def open(self, size: int, limit: int) -> torch.Tensor:
        """Return at least so many bytes that nobody reads any more."""
        if self._copy is not None:
            self._copy.synchronize()
            self._copy = None
        if self._memory is None or self._memory.numel() < size:
            grown = max(_LEAST_BYTES, 1 << (size - 1).bit_length())
            self._memory = None  # Freed before the larger one is taken.
            self._memory = self._device.allocate(max(size, min(grown, limit)))
        return self._memory

    def copy(self, size: int) -> torch.Tensor:
        assert self._memory is not None
        there, self._copy = self._device.copy(self._memory[:size])
        return there


class StagedFields:
    """Finds the tensors of fields with `device: worker`, nested ones too.

    Args:
        codec: of the messages.
    """

    def __init__(self, codec: Codec[Any]) -> None:
        self._fields = _staged_fields(codec.records)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._fields)

    def visit(self, messages: list[Any], visit: Visit) -> None:
        """Let a function replace the tensors of messages, in an order that is always the same."""
        for message in messages:
            if type(message) in self._fields:
                self._visit_record(message, visit)

    def _visit_record(self, record: Any, visit: Visit) -> None:
        for name, wanted in self._fields[type(record)]:
            before = getattr(record, name)
            after = self._visit_value(before, wanted, visit)
            if after is not before:
                setattr(record, name, after)

    def _visit_value(self, value: Any, wanted: bool, visit: Visit) -> Any:
        """Return what takes the place of a value; lists and dicts are changed in place.

        Args:
            wanted: whether the field says so of tensors that are not in a struct of their own.
        """
        if isinstance(value, torch.Tensor):
            return visit(value) if wanted else value
        if isinstance(value, list):
            value[:] = [self._visit_value(each, wanted, visit) for each in value]
        elif isinstance(value, dict):
            for key, each in value.items():
                value[key] = self._visit_value(each, wanted, visit)
        elif type(value) is tuple:
            return tuple(self._visit_value(each, wanted, visit) for each in value)
        elif type(value) in self._fields:
            self._visit_record(value, visit)
        return value


def _staged_fields(records: table.Records) -> dict[type, list[tuple[str, bool]]]:
    """Return the fields of each class that lead to such a tensor, and whether they hold it."""
    found: dict[type, list[tuple[str, bool]]] = {}
    grown = True
    while grown:
        grown = False
        for cls, record in records.items():
            fields = []
            for field in record.live_fields:
                parts = table.parts(field.type)
                wanted = any(
                    isinstance(part, table.Tensor) and part.device == "worker"
                    for part in parts
                )
                leads = any(
                    isinstance(part, (table.Struct, table.Message))
                    and part.cls in found
                    for part in parts
                )
                if wanted or leads:
                    fields.append((field.name, wanted))
            if fields and found.get(cls) != fields:
                found[cls] = fields
                grown = True
    return found


class Staging:
    """Brings the tensors of a step to a device.

    Args:
        fields: which tensors.
        device: where to.
        max_bytes: of one copy.
    """

    def __init__(
        self, fields: StagedFields, device: Device, max_bytes: int = MAX_STAGING_BYTES
    ) -> None:
        self._fields = fields
        self._device = device
        self._max_bytes = max_bytes
        self._buffers = [_Buffer(device) for _ in range(_BUFFERS)]
        self._next = 0

    def __call__(self, messages: list[Any]) -> None:
        """Replace the tensors of messages by ones on the device, equal in shape, dtype and value.

        Those of one step share one piece of the device's memory, which is freed with the last of
        them.
        """
        tensors: list[torch.Tensor] = []

        def collect(tensor: torch.Tensor) -> torch.Tensor:
            tensors.append(tensor.contiguous())
            return tensor

        self._fields.visit(messages, collect)
        if tensors:
            staged = iter(self._stage(tensors))
            self._fields.visit(messages, lambda _: next(staged))

    def _stage(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return tensors on the device, in order."""
        staged: list[torch.Tensor] = []
        part: list[torch.Tensor] = []
        size = 0
        for tensor in tensors:
            if tensor.nbytes > self._max_bytes:
                staged += self._copy(part)
                staged.append(self._device.copy_alone(tensor))
                part, size = [], 0
                continue
            if _aligned(size) + tensor.nbytes > self._max_bytes:
                staged += self._copy(part)
                part, size = [], 0
            part.append(tensor)
            size = _aligned(size) + tensor.nbytes
        return staged + self._copy(part)

    def _copy(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Copy tensors that fit into one buffer."""
        if not tensors:
            return []
        offsets = []
        size = 0
        for tensor in tensors:
            offsets.append(_aligned(size))
            size = offsets[-1] + tensor.nbytes
        buffer = self._buffers[self._next]
        self._next = (self._next + 1) % len(self._buffers)
        # A step of empty tensors alone needs a byte, too, to have a place on the device.
        size = max(size, 1)
        start = buffer.open(size, self._max_bytes).data_ptr()
        for tensor, offset in zip(tensors, offsets):
            ctypes.memmove(start + offset, tensor.data_ptr(), tensor.nbytes)
        there = buffer.copy(size)
        return [_view(there, *each) for each in zip(tensors, offsets)]


def _view(memory: torch.Tensor, like: torch.Tensor, offset: int) -> torch.Tensor:
    """Return a tensor on a piece of memory, of the dtype and shape of another one."""
    view = torch.empty(0, dtype=like.dtype, device=memory.device)
    start = offset // like.element_size()
    return view.set_(memory.untyped_storage(), start, like.shape, like.stride())


def _aligned(offset: int) -> int:
    return (offset + ALIGNMENT - 1) & -ALIGNMENT


def choose_staging(
    codec: Codec[Any], device: torch.device
) -> Callable[[list[Any]], None]:
    """Return what brings the tensors of a step's messages where the handler wants them."""
    fields = StagedFields(codec)
    if device.type == "cpu" or not fields:
        return _stay
    return Staging(fields, CudaDevice(device))


def _stay(messages: list[Any]) -> None:
    """Leave tensors where they are."""

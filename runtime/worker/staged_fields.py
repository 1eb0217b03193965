"""Which tensors of a message its worker wants on its device, by the codec's description table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from msgen.runtime.codec import table
from msgen.runtime.codec.codec import Codec

Visit: TypeAlias = Callable[[torch.Tensor], torch.Tensor]
"""Takes a tensor of a message and returns what takes its place."""


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

"""Random schemas, and random values of them, through everything that should agree."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import msgspec
from building import Built, built, write_schema
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgen.codegen.schema import model
from msgen.runtime.codec import table, wire
from msgen.runtime.codec.frames import FrameReader
from msgen.runtime.codec.table_codec import TableDecoder, TableEncoder
from schemas import DrawSource, SchemaMaker
from sizes import size
from values import ValueMaker, slots_of

EXAMPLES = size("MSGEN_EXAMPLES", 40, 600)
"""Random schemas tried; a long run asks for more."""
SLOW = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@settings(SLOW, max_examples=EXAMPLES)
@given(st.data())
def test_random_schemas_build_and_their_values_make_the_round_trip(
    data: st.DataObject,
) -> None:
    files = SchemaMaker(DrawSource(data)).files()
    with tempfile.TemporaryDirectory() as folder:
        schema_dir = write_schema(Path(folder) / "schema", files)
        with built(Path(folder), schema_dir) as modules:
            for _ in range(3):
                check_agreement(
                    modules, "main", ValueMaker(data, modules).message("main")
                )


@settings(SLOW, max_examples=2 * EXAMPLES)
@given(st.data())
def test_values_of_every_type_make_the_round_trip(
    everything_built: Built, data: st.DataObject
) -> None:
    check_agreement(
        everything_built,
        "everything",
        ValueMaker(data, everything_built).message("everything"),
    )


def check_agreement(modules: Built, group: str, msg: Any) -> None:
    """Compare the generated codec with itself, the table codec, the model and msgspec."""
    module = modules.module(group)
    codec = module.CODEC
    frame = codec.encode(msg)
    record: table.Record = module.CODEC.records[type(msg)]

    # The fast path takes every valid message: it must not lean on the slow one.
    slots = module._ENCODERS[type(msg)](msg, None)
    unpacked = wire.unpack(frame)
    header = unpacked[0]
    unpacked[0] = record.tag
    assert module._DECODERS[record.tag](unpacked, None) == msg

    decoded = codec.decode(frame)
    assert decoded == msg
    assert codec.encode(decoded) == frame

    slow = TableEncoder(module.CODEC.records, None).message(msg, record)
    slow[0] = header
    assert codec._table_codec.pack(slow) == frame
    again = TableDecoder(module.CODEC.records, None).message(
        type(msg), wire.unpack(frame)
    )
    assert again == msg

    frames = codec.encode_frames(msg, threshold=8)
    assert codec.decode_frames(frames) == msg
    head = wire.unpack(frames[0])
    reader = FrameReader(frames)
    assert TableDecoder(module.CODEC.records, reader).message(type(msg), head) == msg

    declared = next(
        each
        for each in modules.schema.groups[group].messages
        if each.name == record.name
    )
    assert slots[0] == declared.tag
    check_against_msgspec(modules, declared, msg, frame, header)


def check_against_msgspec(
    modules: Built, declared: model.Message, msg: Any, frame: bytes, header: int
) -> None:
    """The bytes are those of another msgpack implementation, which has no 32-bit floats."""
    if any(
        isinstance(part, model.FloatType) and part.bits == 32
        for group in modules.schema.groups.values()
        for record in group.records
        for field in record.fields
        for part in model.walk(field.type)
    ):
        return
    slots = slots_of(modules, declared, msg)
    assert msgspec.msgpack.encode([header, *slots[1:]]) == frame

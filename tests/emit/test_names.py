"""Names of a schema that come close to those of its module: all of them work."""

from __future__ import annotations

from pathlib import Path

from building import built, write_schema
from msgen.runtime.codec import wire

SHARED = """\
group: shared
structs:
  Frames: {fields: {frames_to_slots: int, to_int: i8, cast: bool, fit: "float?"}}
  RECORDS: {fields: {encode: bytes, codec: Kind, mine_to_slots: "list[Kind]"}}
  Int: {fields: {as_int: "tuple[int, f32]"}}
enums:
  Kind: {values: {records: 0, by_number: 1}}
"""
MAIN = """\
group: main
receiver: engine
imports: [shared]
messages:
  Cast: {tag: 1, fields: {frames: Frames, frames_from_slots: Frames, records: RECORDS}}
  Slots: {tag: 2, fields: {int: Int, shared_records: "list[list[Int]]"}}
"""


def test_names_of_functions_and_tables_can_be_taken(tmp_path: Path) -> None:
    files = {"shared.yaml": SHARED, "main.yaml": MAIN}
    schema = write_schema(tmp_path / "schema", files)
    with built(tmp_path, schema) as modules:
        main, shared = modules.module("main"), modules.module("shared")
        frames = shared.Frames(1, 2, True, 0.5)
        records = shared.RECORDS(b"x", shared.Kind.records, [shared.Kind.by_number])
        for msg in (
            main.Cast(frames, frames, records),
            main.Slots(shared.Int((1, 0.5)), [[shared.Int((2, 2.0))], []]),
        ):
            frame = main.encode(msg)
            assert main.decode(frame) == msg
            assert main.decode_frames(main.encode_frames(msg, threshold=1)) == msg
            # The generated functions themselves, which serve where no compiled engine is.
            slots = main._ENCODERS[type(msg)](msg, None)
            unpacked = wire.unpack(frame)
            unpacked[0] = slots[0]
            assert main._DECODERS[slots[0]](unpacked, None) == msg


def test_a_module_exports_what_the_schema_names(tmp_path: Path) -> None:
    files = {"shared.yaml": SHARED, "main.yaml": MAIN}
    schema = write_schema(tmp_path / "schema", files)
    with built(tmp_path, schema) as modules:
        main, shared = modules.module("main"), modules.module("shared")
        assert shared.__all__ == ["RECORDS", "Frames", "Int", "Kind"]
        functions = ["decode", "decode_frames", "encode", "encode_frames"]
        classes = ["BaseMainMsg", "Cast", "MainMsg", "Slots"]
        assert main.__all__ == ["CODEC", *classes, *functions]

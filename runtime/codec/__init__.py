"""Messages to bytes and back: the description table, tensors, frames, and three codecs.

A generated module hands its classes, functions and description table to `Codec`; bytes and frames
come out, and messages from them. It does no I/O, and of the runtime imports `errors` alone.

    native_engine   the compiled engine (plan.py, native/): serves where it was built
    python_engine   the generated functions: serve where it was not
    table_codec/    what either of them refuses: converts it, or says what is wrong

`Codec` and `ENGINE` are for everybody; the other names are what generated modules are made of.
"""

from . import table
from .codec import Codec
from .frames import Buffer, FrameReader, FrameWriter, Unfit
from .native_engine import ENGINE
from .shapes import check_symbols
from .tensors import (
    decode_any_tensor,
    decode_tensor,
    decode_vector,
    encode_any_tensor,
    encode_tensor,
    encode_vector,
    is_tensor,
    same,
)
from .wire import (
    F32_MAX,
    I8_MAX,
    I8_MIN,
    I16_MAX,
    I16_MIN,
    I32_MAX,
    I32_MIN,
    I64_MAX,
    I64_MIN,
    MAX_DEPTH,
    MISSING,
    U8_MAX,
    U16_MAX,
    U32_MAX,
    U64_MAX,
    Decoders,
    Encoders,
    Single,
    as_bool,
    as_dict,
    as_f32,
    as_float,
    as_int,
    as_list,
    as_member,
    as_plain,
    as_str,
    decode_bytes,
    decode_member,
    encode_bytes,
    encode_f32,
    fit,
    to_bool,
    to_float,
    to_int,
)

__all__ = [
    "ENGINE",
    "F32_MAX",
    "I8_MAX",
    "I8_MIN",
    "I16_MAX",
    "I16_MIN",
    "I32_MAX",
    "I32_MIN",
    "I64_MAX",
    "I64_MIN",
    "MAX_DEPTH",
    "MISSING",
    "U8_MAX",
    "U16_MAX",
    "U32_MAX",
    "U64_MAX",
    "Buffer",
    "Codec",
    "Decoders",
    "Encoders",
    "FrameReader",
    "FrameWriter",
    "Single",
    "Unfit",
    "as_bool",
    "as_dict",
    "as_f32",
    "as_float",
    "as_int",
    "as_list",
    "as_member",
    "as_plain",
    "as_str",
    "check_symbols",
    "decode_any_tensor",
    "decode_bytes",
    "decode_member",
    "decode_tensor",
    "decode_vector",
    "encode_any_tensor",
    "encode_bytes",
    "encode_f32",
    "encode_tensor",
    "encode_vector",
    "fit",
    "is_tensor",
    "same",
    "table",
    "to_bool",
    "to_float",
    "to_int",
]

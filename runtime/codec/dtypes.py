"""The one table of dtypes: it feeds the tensors' codec, the plan, and through it the compiled engine."""

from __future__ import annotations

import torch

DTYPE_NUMBERS: dict[str, int] = {
    "bool": 0,
    "uint8": 1,
    "uint16": 2,
    "uint32": 3,
    "uint64": 4,
    "int8": 5,
    "int16": 6,
    "int32": 7,
    "int64": 8,
    "float16": 9,
    "bfloat16": 10,
    "float32": 11,
    "float64": 12,
    "complex64": 13,
    "complex128": 14,
    "float8_e4m3fn": 15,
    "float8_e4m3fnuz": 16,
    "float8_e5m2": 17,
    "float8_e5m2fnuz": 18,
    "float8_e8m0fnu": 19,
}
"""The numbers that dtypes have on the wire where a field's dtype is `any`; never reused."""

# An older torch lacks some of these; a schema that names one cannot be imported there.
DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name) for name in DTYPE_NUMBERS if hasattr(torch, name)
}
NUMBER_OF = {dtype: DTYPE_NUMBERS[name] for name, dtype in DTYPES.items()}
DTYPE_OF = {number: dtype for dtype, number in NUMBER_OF.items()}

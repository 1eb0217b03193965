"""The compiled engine (native/*.c), where it is there and wanted.

It is made of the description table, as plan.py flattens it. What it does not take goes straight to
the table codec, which converts or explains. `MSGEN_CODEC` chooses: `auto` takes it where it was
built and the generated functions where not, `python` never takes it, `native` insists on it.
"""

from __future__ import annotations

import os

import torch

from .dtypes import DTYPE_NUMBERS, DTYPES
from .frames import FrameWriter
from .plan import make_plan
from .table_codec import TableCodec
from .tensors import view

VARIABLE = "MSGEN_CODEC"
CHOICES = ("auto", "python", "native")

why_not: str | None = None
"""Why the compiled engine does not serve; None where it does."""

_choice = os.environ.get(VARIABLE) or "auto"
if _choice not in CHOICES:
    raise ImportError(
        f"{VARIABLE}={_choice}: expected one of {', '.join(CHOICES)}; unset it for auto"
    )

if _choice == "python":
    why_not = f"{VARIABLE}=python"
else:
    try:
        from ._native import Engine, configure
    except ImportError as error:
        why_not = f"it was not built here ({error})"
        if _choice == "native":
            raise ImportError(
                f"{VARIABLE}=native, but the compiled codec cannot be loaded: {error}; install "
                f"msgen again where a C compiler is, or set {VARIABLE}=auto"
            ) from error
    else:
        configure(
            tensor=torch.Tensor,
            parameter=torch.nn.Parameter,
            exchange_api=getattr(torch.Tensor, "__dlpack_c_exchange_api__", None),
            count_modes=getattr(torch._C, "_len_torch_function_stack", None),
            view_of=view,
            frame_writer=FrameWriter,
            samples=tuple(
                torch.empty(1, dtype=DTYPES[name], device="cpu")
                if name in DTYPES
                else None
                for name in DTYPE_NUMBERS
            ),
        )

ENGINE = "native" if why_not is None else "python"
"""What serves the codecs of this process."""


def make(table_codec: TableCodec) -> Engine | None:
    """Make the compiled engine of a group; None where the generated functions serve it.

    Raises:
        ImportError: `MSGEN_CODEC=native`, and the engine cannot serve the group.
    """
    if why_not is not None:
        return None
    try:
        return Engine(
            records=make_plan(table_codec.records),
            prefix=table_codec.prefix,
            encode=table_codec.encode,
            encode_frames=table_codec.encode_frames,
            decode=table_codec.decode,
            decode_frames=table_codec.decode_frames,
        )
    except (ValueError, OverflowError) as error:
        # A class without slots, or more symbols in one message than the engine has room for.
        if _choice == "native":
            raise ImportError(
                f"{VARIABLE}=native, but the compiled codec cannot serve group "
                f"'{table_codec.group}': {error}"
            ) from error
        return None

"""The compiled engine, where it is there and wanted.

`MSGEN_CODEC` chooses: `auto` takes it where it was built and Python where not, `python` never
takes it, `native` insists on it.
"""

from __future__ import annotations

import os

import torch

from .frames import FrameWriter
from .plan import make_plan
from .python_engine import Layout, PythonEngine
from .tensors import view

VARIABLE = "MSGEN_CODEC"
CHOICES = ("auto", "python", "native")

why_not: str | None = None
"""Why the compiled engine does not serve; None where it does."""


def _wanted() -> str:
    choice = os.environ.get(VARIABLE) or "auto"
    if choice not in CHOICES:
        raise ImportError(
            f"{VARIABLE}={choice}: expected one of {', '.join(CHOICES)}; unset it for auto"
        )
    return choice


_choice = _wanted()

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
        )

ENGINE = "native" if why_not is None else "python"
"""What serves the codecs of this process."""


def make(layout: Layout, python: PythonEngine) -> Engine | None:
    """Make the compiled engine of a group; None where Python serves it.

    Raises:
        ImportError: `MSGEN_CODEC=native`, and the engine cannot serve the group.
    """
    if why_not is not None:
        return None
    try:
        return Engine(
            records=make_plan(layout.records, layout.messages),
            prefix=layout.prefix,
            encode=python.encode,
            encode_frames=python.encode_frames,
            decode=python.decode,
            decode_frames=python.decode_frames,
        )
    except (ValueError, OverflowError) as error:
        # A class without slots, or more symbols in one message than the engine has room for.
        if _choice == "native":
            raise ImportError(
                f"{VARIABLE}=native, but the compiled codec cannot serve group "
                f"'{layout.group}': {error}"
            ) from error
        return None

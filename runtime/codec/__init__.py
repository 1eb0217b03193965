"""Messages to bytes and back: the description table, tensors, frames, and three codecs.

A generated module hands its classes, functions and description table to `Codec`; bytes and frames
come out, and messages from them. It does no I/O, and of the runtime imports `errors` alone.

    native_engine   the compiled engine (plan.py, native/): serves where it was built
    python_engine   the generated functions: serve where it was not
    table_codec/    what either of them refuses: converts it, or says what is wrong
"""

from .codec import Codec
from .native_engine import ENGINE

__all__ = ["ENGINE", "Codec"]

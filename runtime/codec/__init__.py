"""Messages to bytes and back: the description table, tensors, frames, and the engines that serve.

A generated module hands its classes, functions and description table to `Codec`; bytes and frames
come out, and messages from them. It does no I/O, and of the runtime imports `errors` alone.
"""

from .codec import Codec
from .native_engine import ENGINE

__all__ = ["ENGINE", "Codec"]

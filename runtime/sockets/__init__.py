"""ZeroMQ without messages: addresses, who may bind them, security, and what sockets tell.

In come addresses and keys as users write them; out go sockets that are bound or connected, and
errors that say why they are not. It imports `msgen.runtime.errors` and nothing else of the runtime.
"""

from .addresses import ipc_address
from .curve import Curve, make_keys

__all__ = ["Curve", "ipc_address", "make_keys"]

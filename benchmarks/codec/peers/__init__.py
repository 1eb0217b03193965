"""The codecs that are compared: msgen first, then the others in the order of the tables."""

from ..messages import Peer
from .msgspec import MSGSPEC, msgspec_peer, vllm_peer
from .plain import DICT, NATIVE, PYTHON, dict_peer, msgen_peers, pickle_peer
from .protobuf import protobuf_peer

__all__ = ["DICT", "MSGSPEC", "NATIVE", "PYTHON", "make_peers"]


def make_peers() -> list[Peer]:
    """Return all peers; the first is msgen, with its compiled engine where it is there."""
    return [
        *msgen_peers(),
        dict_peer(),
        pickle_peer(),
        msgspec_peer(),
        vllm_peer(),
        protobuf_peer(),
    ]

"""msgen with its two engines, dicts that name their classes in msgpack, and pickle."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import msgpack
import numpy as np
import torch
from msgen.generated import backend, common, tokenizer
from msgen.runtime import ENGINE

from ..messages import CLASSES, Coder, Peer

NATIVE = "msgen (native)"
PYTHON = "msgen (python)"
DICT = "dict + msgpack"


def msgen_peers() -> list[Peer]:
    """Return msgen with its engines, the faster one first."""
    classes = {
        name: getattr(module, name)
        for name in CLASSES
        for module in (common, backend, tokenizer)
        if hasattr(module, name)
    }
    codecs: dict[str, Any] = {"backend": backend.CODEC, "tokenizer": tokenizer.CODEC}
    python = Peer(
        PYTHON,
        classes,
        {
            name: Coder(codec._python.encode, codec._python.decode)
            for name, codec in codecs.items()
        },
    )
    if ENGINE == "python":
        return [python]
    coders = {name: Coder(codec.encode, codec.decode) for name, codec in codecs.items()}
    return [Peer(NATIVE, classes, coders), python]


def dict_peer() -> Peer:
    """Objects as dicts that name their class and fields, as mini-sglang sends them."""
    coder = Coder(_dict_encode, _dict_decode)
    return Peer(DICT, CLASSES, {"backend": coder, "tokenizer": coder})


def _dict_encode(msg: Any) -> bytes:
    data: bytes = msgpack.packb(_describe_object(msg))
    return data


def _dict_decode(data: bytes) -> Any:
    return _restore(msgpack.unpackb(data))


def _describe(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _describe(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_describe(item) for item in value]
    if isinstance(value, (int, float, str, bool, bytes, type(None))):
        return value
    return _describe_object(value)


def _describe_object(value: Any) -> dict[str, Any]:
    if isinstance(value, torch.Tensor):
        return {
            "__type__": "Tensor",
            "buffer": value.numpy().tobytes(),
            "dtype": str(value.dtype),
        }
    described: dict[str, Any] = {"__type__": type(value).__name__}
    for name, item in value.__dict__.items():
        described[name] = _describe(item)
    return described


def _restore(data: Any) -> Any:
    if isinstance(data, dict):
        if "__type__" in data:
            return _restore_object(data)
        return {key: _restore(item) for key, item in data.items()}
    if isinstance(data, (list, tuple)):
        return [_restore(item) for item in data]
    return data


def _restore_object(data: dict[str, Any]) -> Any:
    name = data["__type__"]
    if name == "Tensor":
        dtype = getattr(np, data["dtype"].replace("torch.", ""))
        return torch.from_numpy(np.frombuffer(data["buffer"], dtype=dtype).copy())
    arguments = {}
    for key, item in data.items():
        if key != "__type__":
            arguments[key] = _restore(item)
    return CLASSES[name](**arguments)


def pickle_peer() -> Peer:
    coder = Coder(partial(pickle.dumps, protocol=5), pickle.loads)
    return Peer("pickle", CLASSES, {"backend": coder, "tokenizer": coder})

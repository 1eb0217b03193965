"""msgspec, in two ways: as fast as it goes, and as vLLM uses it between its processes.

In both, messages are structs as arrays with numbers for tags, and decoders are typed. They differ in
tensors and in the parameters of a request:

- msgspec: a tensor is its bytes.
- vLLM-style: a tensor is `[dtype, shape, raw bytes]`, and the parameters are a map without the fields
  that have their defaults. The bytes are inline here, whatever their size; vLLM itself moves large ones
  to frames of their own, and sends token ids as lists of ints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import reduce
from operator import or_
from typing import Any, get_type_hints

import torch
from msgspec import Struct, defstruct
from msgspec.msgpack import Decoder, Encoder, Ext

from ..messages import CLASSES, Coder, Peer

MSGSPEC = "msgspec"
VLLM = "vLLM-style msgpack"

_TAGS = {
    "UserMsg": 1,
    "AbortBackendMsg": 2,
    "ExitMsg": 3,
    "BatchBackendMsg": 0,
    "TokenizeMsg": 1,
    "DetokenizeMsg": 2,
    "AbortMsg": 3,
    "BatchTokenizerMsg": 0,
}
_BACKEND = ("UserMsg", "AbortBackendMsg", "ExitMsg", "BatchBackendMsg")
_TOKENIZER = ("TokenizeMsg", "DetokenizeMsg", "AbortMsg", "BatchTokenizerMsg")
_RAW = 1
"""The extension type that holds a tensor's bytes."""
_EXTENSION_FROM = 32 * 1024
"""Bytes from which an extension, which takes and gives views, beats plain bytes."""


def msgspec_peer() -> Peer:
    options = {"array_like": True, "gc": False}
    return _peer(MSGSPEC, _structs(options, options), _encode_bytes, _decode_bytes)


def vllm_peer() -> Peer:
    classes = _structs(
        {"array_like": True, "omit_defaults": True, "gc": False},
        {"omit_defaults": True},
    )
    return _peer(VLLM, classes, _encode_described, _decode_described)


def _structs(
    messages: dict[str, bool], params: dict[str, bool]
) -> dict[str, type[Struct]]:
    """Make structs with the fields of the plain dataclasses.

    Args:
        messages: msgspec's options of the messages.
        params: those of the parameters, which have no tag.
    """
    made: dict[str, Any] = {}
    for name, cls in CLASSES.items():
        types = get_type_hints(cls, localns=made)
        spec = [
            (field.name, types[field.name])
            if field.default is MISSING
            else (field.name, types[field.name], field.default)
            for field in fields(cls)
        ]
        options: dict[str, Any] = dict(params)
        if name in _TAGS:
            options = messages | {"tag": _TAGS[name]}
        made[name] = defstruct(name, spec, **options)
    return made


def _peer(
    name: str,
    classes: dict[str, type[Struct]],
    encode_tensor: Callable[[Any], Any],
    decode_tensor: Callable[[type, Any], Any],
) -> Peer:
    encode = Encoder(enc_hook=encode_tensor).encode

    def coder(messages: tuple[str, ...]) -> Coder:
        union: Any = reduce(or_, (classes[each] for each in messages))
        return Coder(
            encode,
            Decoder(union, dec_hook=decode_tensor, ext_hook=_payload_of).decode,
        )

    return Peer(
        name, classes, {"backend": coder(_BACKEND), "tokenizer": coder(_TOKENIZER)}
    )


def _payload_of(code: int, payload: memoryview) -> memoryview:
    return payload


def _encode_bytes(tensor: torch.Tensor) -> bytes | Ext:
    array = tensor.numpy()
    if array.nbytes < _EXTENSION_FROM:
        return array.tobytes()
    return Ext(_RAW, array.data)


def _decode_bytes(kind: type, payload: bytes | memoryview) -> torch.Tensor:
    if not payload:
        return torch.empty(0, dtype=torch.int32)
    return torch.frombuffer(bytearray(payload), dtype=torch.int32)


def _encode_described(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        array = value.flatten().contiguous().view(torch.uint8).numpy()
        name = str(value.dtype).removeprefix("torch.")
        return name, value.shape, Ext(_RAW, array.data)
    raise NotImplementedError(f"values of type {type(value)}")


def _decode_described(kind: type, value: Any) -> Any:
    if issubclass(kind, torch.Tensor):
        name, shape, payload = value
        dtype = getattr(torch, name)
        if not payload:
            return torch.empty(shape, dtype=dtype)
        raw = torch.frombuffer(bytearray(payload), dtype=torch.uint8)
        return raw.view(dtype).view(shape)
    raise NotImplementedError(f"values of type {kind}")

"""msgspec, as fast as it goes: structs as arrays, with numbers for tags and typed decoders."""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
from messages import CLASSES, Coder, Peer
from msgspec import Struct
from msgspec.msgpack import Decoder, Encoder, Ext

_RAW = 1
"""The extension type that holds a tensor's bytes."""
_EXTENSION_FROM = 32 * 1024
"""Bytes from which an extension, which takes and gives views, beats plain bytes."""


class SamplingParams(Struct, array_like=True, gc=False):
    temperature: float = 0.0
    top_k: int = -1
    top_p: float = 1.0
    ignore_eos: bool = False
    max_tokens: int = 1024


class UserMsg(Struct, array_like=True, gc=False, tag=1):
    uid: int
    input_ids: torch.Tensor
    sampling_params: SamplingParams


class AbortBackendMsg(Struct, array_like=True, gc=False, tag=2):
    uid: int


class ExitMsg(Struct, array_like=True, gc=False, tag=3):
    pass


class BatchBackendMsg(Struct, array_like=True, gc=False, tag=0):
    data: list[UserMsg | AbortBackendMsg | ExitMsg]


class TokenizeMsg(Struct, array_like=True, gc=False, tag=1):
    uid: int
    text: str | list[dict[str, str]]
    sampling_params: SamplingParams


class DetokenizeMsg(Struct, array_like=True, gc=False, tag=2):
    uid: int
    next_token: int
    finished: bool


class AbortMsg(Struct, array_like=True, gc=False, tag=3):
    uid: int


class BatchTokenizerMsg(Struct, array_like=True, gc=False, tag=0):
    data: list[TokenizeMsg | DetokenizeMsg | AbortMsg]


BackendMsg: TypeAlias = UserMsg | AbortBackendMsg | ExitMsg | BatchBackendMsg
TokenizerMsg: TypeAlias = TokenizeMsg | DetokenizeMsg | AbortMsg | BatchTokenizerMsg


def msgspec_peer() -> Peer:
    encode = Encoder(enc_hook=_encode_tensor).encode
    return Peer(
        "msgspec",
        {name: globals()[name] for name in CLASSES},
        {
            "backend": Coder(encode, _decoder(BackendMsg).decode),
            "tokenizer": Coder(encode, _decoder(TokenizerMsg).decode),
        },
    )


def _decoder(messages: Any) -> Decoder[Any]:
    return Decoder(messages, dec_hook=_decode_tensor, ext_hook=_decode_extension)


def _encode_tensor(tensor: torch.Tensor) -> bytes | Ext:
    array = tensor.numpy()
    if array.nbytes < _EXTENSION_FROM:
        return array.tobytes()
    return Ext(_RAW, array.data)


def _decode_extension(code: int, payload: memoryview) -> memoryview:
    return payload


def _decode_tensor(kind: type, payload: bytes | memoryview) -> torch.Tensor:
    if not payload:
        return torch.empty(0, dtype=torch.int32)
    return torch.frombuffer(bytearray(payload), dtype=torch.int32)

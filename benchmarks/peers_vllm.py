"""msgspec as vLLM uses it between its processes.

Messages are structs as arrays; their parameters are maps without the fields that have their
defaults. A tensor is `[dtype, shape, raw bytes]`, here with the bytes inline, whatever their
size. vLLM itself moves large ones to frames of their own, and sends token ids as lists of ints.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
from messages import CLASSES, Coder, Peer
from msgspec import Struct
from msgspec.msgpack import Decoder, Encoder, Ext

_RAW = 3
"""The extension type that holds a tensor's bytes."""


class SamplingParams(Struct, omit_defaults=True):
    temperature: float = 0.0
    top_k: int = -1
    top_p: float = 1.0
    ignore_eos: bool = False
    max_tokens: int = 1024


class UserMsg(Struct, array_like=True, omit_defaults=True, gc=False, tag=1):
    uid: int
    input_ids: torch.Tensor
    sampling_params: SamplingParams


class AbortBackendMsg(Struct, array_like=True, omit_defaults=True, gc=False, tag=2):
    uid: int


class ExitMsg(Struct, array_like=True, omit_defaults=True, gc=False, tag=3):
    pass


class BatchBackendMsg(Struct, array_like=True, omit_defaults=True, gc=False, tag=0):
    data: list[UserMsg | AbortBackendMsg | ExitMsg]


class TokenizeMsg(Struct, array_like=True, omit_defaults=True, gc=False, tag=1):
    uid: int
    text: str | list[dict[str, str]]
    sampling_params: SamplingParams


class DetokenizeMsg(Struct, array_like=True, omit_defaults=True, gc=False, tag=2):
    uid: int
    next_token: int
    finished: bool


class AbortMsg(Struct, array_like=True, omit_defaults=True, gc=False, tag=3):
    uid: int


class BatchTokenizerMsg(Struct, array_like=True, omit_defaults=True, gc=False, tag=0):
    data: list[TokenizeMsg | DetokenizeMsg | AbortMsg]


BackendMsg: TypeAlias = UserMsg | AbortBackendMsg | ExitMsg | BatchBackendMsg
TokenizerMsg: TypeAlias = TokenizeMsg | DetokenizeMsg | AbortMsg | BatchTokenizerMsg


def vllm_peer() -> Peer:
    encode = Encoder(enc_hook=_encode_hook).encode
    return Peer(
        "vLLM-style msgpack",
        {name: globals()[name] for name in CLASSES},
        {
            "backend": Coder(encode, _decoder(BackendMsg).decode),
            "tokenizer": Coder(encode, _decoder(TokenizerMsg).decode),
        },
    )


def _decoder(messages: Any) -> Decoder[Any]:
    return Decoder(messages, dec_hook=_decode_hook, ext_hook=_extension_hook)


def _encode_hook(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        array = value.flatten().contiguous().view(torch.uint8).numpy()
        name = str(value.dtype).removeprefix("torch.")
        return name, value.shape, Ext(_RAW, array.data)
    raise NotImplementedError(f"values of type {type(value)}")


def _extension_hook(code: int, payload: memoryview) -> memoryview:
    if code == _RAW:
        return payload
    raise NotImplementedError(f"extension type {code}")


def _decode_hook(kind: type, value: Any) -> Any:
    if issubclass(kind, torch.Tensor):
        name, shape, payload = value
        dtype = getattr(torch, name)
        if not payload:
            return torch.empty(shape, dtype=dtype)
        raw = torch.frombuffer(bytearray(payload), dtype=torch.uint8)
        return raw.view(dtype).view(shape)
    raise NotImplementedError(f"values of type {kind}")

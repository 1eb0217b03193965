"""protobuf, with its descriptors made at run time; token ids are a field of bytes.

A protobuf message holds no tensor, and users of protobuf hold objects of their own. So encoding
starts from the plain dataclasses and includes filling the protobuf message; decoding ends with
the plain dataclasses.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch

from ..messages import (
    CLASSES,
    AbortBackendMsg,
    AbortMsg,
    BatchBackendMsg,
    BatchTokenizerMsg,
    Coder,
    DetokenizeMsg,
    ExitMsg,
    Peer,
    SamplingParams,
    TokenizeMsg,
    UserMsg,
)

# Name and type of the fields, in the order of their numbers. `*` is repeated; all fields of a
# message with `|` are one oneof, `kind`.
_PARAMS = "sampling_params SamplingParams"
_MESSAGES: dict[str, tuple[str, ...]] = {
    "SamplingParams": (
        "temperature double",
        "top_k sint64",
        "top_p double",
        "ignore_eos bool",
        "max_tokens int64",
    ),
    "UserMsg": ("uid int64", "input_ids bytes", _PARAMS),
    "AbortBackendMsg": ("uid int64",),
    "ExitMsg": (),
    "BatchBackendMsg": ("data BackendMsg*",),
    "BackendMsg": (
        "user UserMsg|",
        "abort AbortBackendMsg|",
        "exit ExitMsg|",
        "batch BatchBackendMsg|",
    ),
    "Turn": ("role string", "content string"),
    "Conversation": ("turns Turn*",),
    "TokenizeMsg": (
        "uid int64",
        "prompt string|",
        "conversation Conversation|",
        _PARAMS,
    ),
    "DetokenizeMsg": ("uid int64", "next_token int64", "finished bool"),
    "AbortMsg": ("uid int64",),
    "BatchTokenizerMsg": ("data TokenizerMsg*",),
    "TokenizerMsg": (
        "tokenize TokenizeMsg|",
        "detokenize DetokenizeMsg|",
        "abort AbortMsg|",
        "batch BatchTokenizerMsg|",
    ),
}


def _make_classes() -> dict[str, Any]:
    """Do what protoc does: from the table above to message classes, by name."""
    descriptors: Any = import_module("google.protobuf.descriptor_pb2")
    pools: Any = import_module("google.protobuf.descriptor_pool")
    factory: Any = import_module("google.protobuf.message_factory")
    kinds = descriptors.FieldDescriptorProto
    file = descriptors.FileDescriptorProto(
        name="bench.proto", package="bench", syntax="proto3"
    )
    for name, declarations in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, declaration in enumerate(declarations, 1):
            label, kind = declaration.split()
            field = message.field.add(
                name=label, number=number, label=kinds.LABEL_OPTIONAL
            )
            if kind.endswith("*"):
                field.label = kinds.LABEL_REPEATED
            if kind.endswith("|"):
                if not message.oneof_decl:
                    message.oneof_decl.add(name="kind")
                field.oneof_index = 0
            kind = kind.rstrip("*|")
            if kind in _MESSAGES:
                field.type = kinds.TYPE_MESSAGE
                field.type_name = f".bench.{kind}"
            else:
                field.type = getattr(kinds, f"TYPE_{kind.upper()}")
    pool = pools.DescriptorPool()
    pool.Add(file)
    classes = factory.GetMessageClassesForFiles([file.name], pool)
    return {name: classes[f"bench.{name}"] for name in _MESSAGES}


_classes = _make_classes()


def protobuf_peer() -> Peer:
    coders = {
        "backend": _coder(_classes["BackendMsg"], _fill_backend, _read_backend),
        "tokenizer": _coder(_classes["TokenizerMsg"], _fill_tokenizer, _read_tokenizer),
    }
    return Peer("protobuf", CLASSES, coders)


def _coder(
    outer_class: Any, fill: Callable[[Any, Any], None], read: Callable[[Any], Any]
) -> Coder:
    def encode(msg: Any) -> bytes:
        outer = outer_class()
        fill(outer, msg)
        data: bytes = outer.SerializeToString()
        return data

    def decode(data: bytes) -> Any:
        return read(outer_class.FromString(data))

    return Coder(encode, decode)


# Setting fields in place is the fastest way that protobuf has; keyword arguments take longer.


def _fill_backend(outer: Any, msg: Any) -> None:
    kind = type(msg)
    if kind is UserMsg:
        inner = outer.user
        inner.uid = msg.uid
        inner.input_ids = msg.input_ids.numpy().tobytes()
        _fill_params(inner.sampling_params, msg.sampling_params)
    elif kind is AbortBackendMsg:
        outer.abort.uid = msg.uid
    elif kind is ExitMsg:
        outer.exit.SetInParent()
    else:
        add = outer.batch.data.add
        for item in msg.data:
            _fill_backend(add(), item)


def _fill_tokenizer(outer: Any, msg: Any) -> None:
    kind = type(msg)
    if kind is DetokenizeMsg:
        inner = outer.detokenize
        inner.uid = msg.uid
        inner.next_token = msg.next_token
        inner.finished = msg.finished
    elif kind is TokenizeMsg:
        inner = outer.tokenize
        inner.uid = msg.uid
        if type(msg.text) is str:
            inner.prompt = msg.text
        else:
            add = inner.conversation.turns.add
            for turn in msg.text:
                add(role=turn["role"], content=turn["content"])
        _fill_params(inner.sampling_params, msg.sampling_params)
    elif kind is AbortMsg:
        outer.abort.uid = msg.uid
    else:
        add = outer.batch.data.add
        for item in msg.data:
            _fill_tokenizer(add(), item)


def _fill_params(target: Any, params: SamplingParams) -> None:
    target.temperature = params.temperature
    target.top_k = params.top_k
    target.top_p = params.top_p
    target.ignore_eos = params.ignore_eos
    target.max_tokens = params.max_tokens


def _read_backend(outer: Any) -> Any:
    kind = outer.WhichOneof("kind")
    if kind == "user":
        inner = outer.user
        return UserMsg(
            inner.uid,
            _tensor(inner.input_ids),
            _read_params(inner.sampling_params),
        )
    if kind == "abort":
        return AbortBackendMsg(outer.abort.uid)
    if kind == "exit":
        return ExitMsg()
    return BatchBackendMsg([_read_backend(item) for item in outer.batch.data])


def _read_tokenizer(outer: Any) -> Any:
    kind = outer.WhichOneof("kind")
    if kind == "detokenize":
        inner = outer.detokenize
        return DetokenizeMsg(inner.uid, inner.next_token, inner.finished)
    if kind == "tokenize":
        inner = outer.tokenize
        if inner.WhichOneof("kind") == "prompt":
            text = inner.prompt
        else:
            text = [
                {"role": turn.role, "content": turn.content}
                for turn in inner.conversation.turns
            ]
        return TokenizeMsg(inner.uid, text, _read_params(inner.sampling_params))
    if kind == "abort":
        return AbortMsg(outer.abort.uid)
    return BatchTokenizerMsg([_read_tokenizer(item) for item in outer.batch.data])


def _read_params(params: Any) -> SamplingParams:
    return SamplingParams(
        params.temperature,
        params.top_k,
        params.top_p,
        params.ignore_eos,
        params.max_tokens,
    )


def _tensor(payload: bytes) -> torch.Tensor:
    if not payload:
        return torch.empty(0, dtype=torch.int32)
    return torch.frombuffer(bytearray(payload), dtype=torch.int32)

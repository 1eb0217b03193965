"""Encode and decode a batch, then send messages from one process to another over ZeroMQ.

Run `msgen build schema/` first; `make demo` does both.
"""

from __future__ import annotations

import multiprocessing
import tempfile
from pathlib import Path

import torch
from msgen.generated import backend
from msgen.generated.common import SamplingParams
from msgen.runtime.queues import ZmqPullQueue, ZmqPushQueue


def show_codec() -> None:
    """One message to bytes and back."""
    request = backend.UserMsg(
        uid=7,
        input_ids=torch.tensor([1, 2, 3], dtype=torch.int32),
        sampling_params=SamplingParams(temperature=0.7),
    )
    batch = backend.BatchBackendMsg([request])
    frame = backend.encode(batch)
    print(f"encoded: {type(batch).__name__} in {len(frame)} bytes")
    print(f"  {frame.hex(' ')}")
    decoded = backend.decode(frame)
    print(f"decoded: {decoded}")
    print(f"equal:   {decoded == batch}")


def sender(addr: str) -> None:
    """The other process: three requests, then the order to exit."""
    with ZmqPushQueue(addr, create=False, codec=backend.CODEC) as queue:
        for uid, tokens in enumerate((3, 1_000, 100_000)):
            queue.put(
                backend.UserMsg(
                    uid=uid,
                    input_ids=torch.arange(tokens, dtype=torch.int32),
                    sampling_params=SamplingParams(max_tokens=16),
                )
            )
        queue.put(backend.ExitMsg())


def show_queues() -> None:
    """Messages with tensors from one process to another."""
    with tempfile.TemporaryDirectory(prefix="msgen-") as folder:
        addr = f"ipc://{Path(folder) / 'backend'}"
        with ZmqPullQueue(addr, create=True, codec=backend.CODEC) as queue:
            process = multiprocessing.get_context("spawn").Process(
                target=sender, args=(addr,)
            )
            process.start()
            while True:
                msg = queue.get(timeout=60)
                if isinstance(msg, backend.ExitMsg):
                    print("received: ExitMsg")
                    break
                if isinstance(msg, backend.UserMsg):
                    ids = msg.input_ids
                    print(
                        f"received: UserMsg {msg.uid} with {ids.numel()} tokens, "
                        f"the last is {int(ids[-1])}"
                    )
            process.join()


if __name__ == "__main__":
    show_codec()
    show_queues()

"""Encode and decode a batch, send messages between processes, broadcast steps to all ranks.

Run `msgen build schema/` first; `make demo` does both.
"""

from __future__ import annotations

import multiprocessing
import secrets
from multiprocessing.connection import Connection

import torch
from msgen.generated import backend
from msgen.generated.common import SamplingParams
from msgen.runtime.broadcast import StepPublisher, StepSubscriber
from msgen.runtime.queues import ZmqPullQueue, ZmqPushQueue
from msgen.runtime.sockets import ipc_address

PROCESSES = multiprocessing.get_context("spawn")
TIMEOUT_S = 60.0  # Processes import torch first, which takes seconds.
WORLD_SIZE = 3


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


def described(msg: backend.BackendMsg) -> str:
    if isinstance(msg, backend.UserMsg):
        ids = msg.input_ids
        return (
            f"UserMsg {msg.uid} with {ids.numel()} tokens, the last is {int(ids[-1])}"
        )
    return type(msg).__name__


def send(addr: str, sizes: list[int]) -> None:
    """The tokenizer's process: requests of these sizes, then the order to exit."""
    with ZmqPushQueue(
        addr, create=False, codec=backend.CODEC, timeout=TIMEOUT_S
    ) as queue:
        for uid, tokens in enumerate(sizes):
            ids = torch.arange(tokens, dtype=torch.int32)
            queue.put(backend.UserMsg(uid, ids, SamplingParams(max_tokens=16)))
        queue.put(backend.ExitMsg())


def show_queues(run: str) -> None:
    """Messages with tensors from one process to another."""
    addr = ipc_address(backend.CODEC.group, run)
    with ZmqPullQueue(
        addr, create=True, codec=backend.CODEC, timeout=TIMEOUT_S
    ) as queue:
        process = PROCESSES.Process(target=send, args=(addr, [3, 1_000, 100_000]))
        process.start()
        while True:
            msg = queue.get()
            print(f"received: {described(msg)}")
            if isinstance(msg, backend.ExitMsg):
                break
        process.join()


def follow(addr: str, rank: int, result: Connection) -> None:
    """The process of a rank above 0: takes steps until the order to exit."""
    lines = []
    with StepSubscriber(
        addr, backend.CODEC, rank, WORLD_SIZE, timeout=TIMEOUT_S
    ) as steps:
        exiting = False
        while not exiting:
            for msg in steps.get():
                lines.append(described(msg))
                exiting = exiting or isinstance(msg, backend.ExitMsg)
    result.send(lines)


def show_broadcast(run: str) -> None:
    """Rank 0 takes requests and gives every rank the same ones in the same step."""
    requests = ipc_address(backend.CODEC.group, run)
    steps = ipc_address("backend.steps", run)
    pipes = [PROCESSES.Pipe(duplex=False) for _ in range(1, WORLD_SIZE)]
    processes = [PROCESSES.Process(target=send, args=(requests, [20_000]))]
    for rank, (_, result) in enumerate(pipes, start=1):
        processes.append(PROCESSES.Process(target=follow, args=(steps, rank, result)))
    with (
        ZmqPullQueue(
            requests, create=True, codec=backend.CODEC, timeout=TIMEOUT_S
        ) as queue,
        StepPublisher(steps, backend.CODEC, WORLD_SIZE, timeout=TIMEOUT_S) as publisher,
    ):
        for process in processes:
            process.start()
        for _, result in pipes:
            result.close()  # The ranks have theirs.
        publisher.wait_for_subscribers()
        exiting = False
        while not exiting:
            step = publisher.put_raw([queue.get_raw()])  # the frames as they came
            for msg in publisher.decode(step):
                print(f"rank 0 received: {described(msg)}")
                exiting = exiting or isinstance(msg, backend.ExitMsg)
        for rank, (lines, _) in enumerate(pipes, start=1):
            for line in lines.recv():
                print(f"rank {rank} received: {line}")
        for process in processes:
            process.join()


if __name__ == "__main__":
    show_codec()
    show_queues(run=secrets.token_hex(8))
    show_broadcast(run=secrets.token_hex(8))

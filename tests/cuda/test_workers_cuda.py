"""A pool on real GPUs: devices, NCCL, and memory that runs out there."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from children import user
from handlers import TROUBLE, token
from msgen.generated import backend
from msgen.runtime import WorkerError
from pools import serving
from processes import GENEROUS

GPUS = torch.cuda.device_count()

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not GPUS, reason="this machine has no GPU that torch can use"),
    pytest.mark.usefixtures("run_dir"),
]
# A forked process cannot use a GPU that its server has looked at.
ON_GPU: dict[str, Any] = {"device": "cuda", "start_method": "spawn"}


def test_each_rank_has_its_own_gpu() -> None:
    with serving("Places", "places", options={"greeting": "x"}, **ON_GPU) as served:
        served.ask(backend.AbortBackendMsg(0))
        assert served.replies(1)[0].text.startswith("x 0 1 0 cuda:0 None ")


@pytest.mark.skipif(GPUS < 2, reason=f"needs 2 GPUs, this machine has {GPUS}")
def test_ranks_exchange_by_nccl() -> None:
    with serving("TogetherOnGpu", "nccl", ranks=2, **ON_GPU) as served:
        served.ask(*(user(uid, 3) for uid in range(100)))
        assert [reply.next_token for reply in served.replies(100)] == [2] * 100
        served.pool.ping(GENEROUS)


def test_memory_of_the_gpu_that_runs_out_is_an_exception() -> None:
    options = {"kind": "exhaust_gpu"}
    with serving("Troubled", "oom", options=options, **ON_GPU) as served:
        served.ask(user(1, 3))
        assert served.replies(1) == [token(1)]
        served.ask(user(TROUBLE, 3))
        error = served.failure()
    assert error.type.endswith("OutOfMemoryError")
    assert error.messages == (user(TROUBLE, 3),)


def test_more_ranks_than_gpus_are_refused() -> None:
    text = f"this machine has {GPUS} such devices"
    with (
        pytest.raises(WorkerError, match=text),
        serving("Echo", "many", ranks=GPUS + 1, **ON_GPU),
    ):
        pass

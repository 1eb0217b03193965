"""Workers on two machines: two agents of torchrun, on two loopback addresses."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from children import user
from handlers import TROUBLE, token
from msgen.generated import backend, tokenizer
from msgen.runtime.launch import main
from msgen.runtime.meeting import own_host
from msgen.runtime.queues import ZmqPullQueue, ZmqPushQueue
from msgen.runtime.security import Curve, make_keys
from pools import CODECS
from processes import GENEROUS, is_alive, until

TESTS = Path(__file__).parent

pytestmark = pytest.mark.usefixtures("run_dir")


@dataclass
class Machines:
    """Two agents, each with one rank, and a client's queues."""

    agents: list[subprocess.Popen[str]]
    push: ZmqPushQueue[Any]
    pull: ZmqPullQueue[Any]

    def ranks(self) -> list[int]:
        """Return the process ids of the ranks."""
        found = []
        for agent in self.agents:
            children = Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text()
            found += [int(each) for each in children.split()]
        return found

    def exit_codes(self) -> list[int]:
        return [agent.wait(GENEROUS) for agent in self.agents]

    def told(self) -> str:
        """Return what the agents and their ranks wrote, once they have ended."""
        return "".join(agent.stderr.read() for agent in self.agents if agent.stderr)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def machines(tmp_path: Path, handler: str, *arguments: str) -> Iterator[Machines]:
    """Start two agents, and connect to rank 0 with keys."""
    rank, rank_secret = make_keys(tmp_path, "rank")
    client, client_secret = make_keys(tmp_path, "client")
    requests, rendezvous = free_port(), free_port()
    with ExitStack() as stack:
        pull = stack.enter_context(
            ZmqPullQueue(
                "tcp://127.0.0.1:0",
                create=True,
                codec=tokenizer.CODEC,
                timeout=GENEROUS,
                security=Curve.server(client_secret, clients=[rank]),
            )
        )
        command = [sys.executable, "-m", "torch.distributed.run"]
        command += ["--nnodes", "2", "--nproc-per-node", "1"]
        command += ["--master-addr", "127.0.0.1", "--master-port", str(rendezvous)]
        program = ["-m", "msgen.runtime.launch", "--handler", f"handlers:{handler}"]
        program += ["--requests", f"tcp://127.0.0.1:{requests}", "--replies", pull.addr]
        program += [
            "--requests-key",
            str(rank_secret),
            "--requests-client",
            str(client),
        ]
        program += ["--replies-server", str(client), "--replies-key", str(rank_secret)]
        program += ["--request-codec", CODECS["request_codec"]]
        program += ["--reply-codec", CODECS["reply_codec"], *arguments]
        agents = []
        for node, address in enumerate(["127.0.0.1", "127.0.0.2"]):
            place = ["--node-rank", str(node), "--local-addr", address]
            agent = subprocess.Popen(
                [*command, *place, *program, "--host", address],
                env={**os.environ, "PYTHONPATH": str(TESTS)},
                stderr=subprocess.PIPE,
                text=True,
            )
            stack.enter_context(agent)
            stack.callback(agent.kill)
            agents.append(agent)
        push = stack.enter_context(
            ZmqPushQueue(
                f"tcp://127.0.0.1:{requests}",
                create=False,
                codec=backend.CODEC,
                timeout=GENEROUS,
                linger=0,
                security=Curve.client(rank, client_secret),
            )
        )
        yield Machines(agents, push, pull)


def test_ranks_of_two_machines_work_together_and_end_together(tmp_path: Path) -> None:
    with machines(tmp_path, "Chain") as both:
        for uid in range(100):
            both.push.put(user(uid, uid % 50))
        both.push.put(backend.ExitMsg())
        replies: list[Any] = []
        while len(replies) < 101:
            replies += both.pull.get_many(101)
        assert [reply.uid for reply in replies] == [*range(100), -1]
        steps_of_ranks = replies[-1].text.split()
        assert len(steps_of_ranks) == 2
        assert len(set(steps_of_ranks)) == 1
        # As Ctrl-C does on one of the machines, and its agent on the other.
        for agent in both.agents:
            agent.send_signal(signal.SIGTERM)
        both.exit_codes()
        told = both.told()
        assert "rank 0: ended" in told
        assert "rank 1: ended" in told


def test_a_rank_that_fails_ends_both_machines_and_is_told(tmp_path: Path) -> None:
    options = ('{"kind": "fail", "ranks": [1]}',)
    with machines(tmp_path, "Troubled", "--options", *options) as both:
        both.push.put(backend.AbortBackendMsg(1))
        assert both.pull.get() == token(1)
        both.push.put(backend.AbortBackendMsg(TROUBLE))
        assert all(both.exit_codes())
        told = both.told()
        assert "rank 1: failed in step 1" in told
        assert "ValueError: number 13 is bad" in told
        assert "RankLost" in told


def test_a_step_that_takes_too_long_ends_both_machines(tmp_path: Path) -> None:
    options = ('{"kind": "hang", "ranks": [1]}', "--step-timeout", "0.5")
    with machines(tmp_path, "Troubled", "--options", *options) as both:
        both.push.put(backend.AbortBackendMsg(TROUBLE))
        assert all(both.exit_codes())
        told = both.told()
        assert "rank 1: step 0 has taken" in told
        assert "in hang" in told


def test_a_rank_does_not_outlive_its_agent(tmp_path: Path) -> None:
    with machines(tmp_path, "Echo") as both:
        both.push.put(backend.AbortBackendMsg(1))
        assert both.pull.get() == token(1)
        ranks = both.ranks()
        assert len(ranks) == 2
        for agent in both.agents:
            agent.kill()
        until(lambda: not any(map(is_alive, ranks)))


def test_the_own_address_is_that_of_the_way_to_the_others() -> None:
    assert own_host("127.0.0.1", 29500) == "127.0.0.1"


def test_a_place_that_is_no_number_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("RANK", "first")
    arguments = ["--handler", "handlers:Echo", "--replies", "ipc:///tmp/x"]
    arguments += ["--request-codec", CODECS["request_codec"]]
    with pytest.raises(ValueError, match="RANK: expected a number in the environment"):
        main([*arguments, "--reply-codec", CODECS["reply_codec"]])

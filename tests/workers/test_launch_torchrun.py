"""Workers on two machines: two agents of torchrun, in network namespaces or on two addresses."""

from __future__ import annotations

import os
import shutil
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
from msgen.runtime.queues import ZmqPullQueue, ZmqPushQueue
from msgen.runtime.sockets import Curve, ipc_address, make_keys
from msgen.runtime.worker.rank.meeting import own_host
from pools import CODECS
from processes import GENEROUS, is_alive, until

TESTS = Path(__file__).parents[1] / "support"

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


@dataclass(frozen=True)
class Network:
    """Two machines, as far as a network shows.

    Attributes:
        addresses: of each.
        enter: the beginning of a command that runs on each.
        inside: whether this process can reach them by tcp.
        environment: what programs there need.
    """

    addresses: tuple[str, str]
    enter: tuple[list[str], list[str]]
    inside: bool
    environment: dict[str, str]


LOOPBACK = Network(("127.0.0.1", "127.0.0.2"), ([], []), True, {})


@contextmanager
def namespaces() -> Iterator[Network]:
    """Make two network namespaces with a cable between them; skip where that is not allowed."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("network namespaces need root and the command ip")
    names = [f"msgen-{os.getpid()}-{end}" for end in "ab"]
    ends = [f"ms{os.getpid()}{end}" for end in "ab"]
    addresses = ("10.213.77.1", "10.213.77.2")
    steps = [["netns", "add", name] for name in names]
    steps += [["link", "add", ends[0], "type", "veth", "peer", "name", ends[1]]]
    for name, end, address in zip(names, ends, addresses):
        inside = ["-n", name]
        steps += [["link", "set", end, "netns", name]]
        steps += [[*inside, "link", "set", end, "name", "cable"]]
        steps += [[*inside, "addr", "add", f"{address}/24", "dev", "cable"]]
        steps += [[*inside, "link", "set", "cable", "up"]]
        steps += [[*inside, "link", "set", "lo", "up"]]
    try:
        for step in steps:
            done = subprocess.run(["ip", *step], capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"no network namespaces here: {done.stderr.strip()}")
        enter = (["ip", "netns", "exec", names[0]], ["ip", "netns", "exec", names[1]])
        # Else gloo looks for the address of the machine's name, which is not in here.
        yield Network(addresses, enter, False, {"GLOO_SOCKET_IFNAME": "cable"})
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(frozen=True)
class Ways:
    """The client's queues, and what rank 0 is told of them."""

    requests: str
    client: dict[str, Any]
    server: dict[str, Any]
    arguments: list[str]


def choose_ways(tmp_path: Path, network: Network) -> Ways:
    """Return tcp with keys where this process can reach the ranks, else ipc."""
    if not network.inside:
        requests, replies = ipc_address("requests", "x"), ipc_address("replies", "x")
        return Ways(requests, {}, {"addr": replies}, [])
    rank, rank_secret = make_keys(tmp_path, "rank")
    client, client_secret = make_keys(tmp_path, "client")
    arguments = ["--requests-key", str(rank_secret), "--requests-client", str(client)]
    arguments += ["--replies-server", str(client), "--replies-key", str(rank_secret)]
    return Ways(
        f"tcp://127.0.0.1:{free_port()}",
        {"security": Curve.client(rank, client_secret)},
        {
            "addr": "tcp://127.0.0.1:0",
            "security": Curve.server(client_secret, clients=[rank]),
        },
        arguments,
    )


@contextmanager
def machines(
    tmp_path: Path, handler: str, *arguments: str, network: Network = LOOPBACK
) -> Iterator[Machines]:
    """Start two agents, and connect to rank 0."""
    ways = choose_ways(tmp_path, network)
    with ExitStack() as stack:
        pull = stack.enter_context(
            ZmqPullQueue(
                create=True, codec=tokenizer.CODEC, timeout=GENEROUS, **ways.server
            )
        )
        command = [sys.executable, "-m", "torch.distributed.run"]
        command += ["--nnodes", "2", "--nproc-per-node", "1"]
        command += ["--master-addr", network.addresses[0]]
        command += ["--master-port", str(free_port())]
        program = ["-m", "msgen.runtime.launch", "--handler", f"handlers:{handler}"]
        program += ["--requests", ways.requests, "--replies", pull.addr]
        program += ["--request-codec", CODECS["request_codec"]]
        program += ["--reply-codec", CODECS["reply_codec"], *arguments]
        agents = []
        for node, address in enumerate(network.addresses):
            place = ["--node-rank", str(node), "--local-addr", address]
            host = ["--host", address] if network.inside else []
            agent = subprocess.Popen(
                [
                    *network.enter[node],
                    *command,
                    *place,
                    *program,
                    *host,
                    *ways.arguments,
                ],
                env={**os.environ, "PYTHONPATH": str(TESTS), **network.environment},
                stderr=subprocess.PIPE,
                text=True,
            )
            stack.enter_context(agent)
            stack.callback(agent.kill)
            agents.append(agent)
        push = stack.enter_context(
            ZmqPushQueue(
                ways.requests,
                create=False,
                codec=backend.CODEC,
                timeout=GENEROUS,
                linger=0,
                **ways.client,
            )
        )
        yield Machines(agents, push, pull)


@pytest.fixture(params=["loopback", "namespaces"])
def network(request: pytest.FixtureRequest) -> Iterator[Network]:
    if request.param == "loopback":
        yield LOOPBACK
        return
    with namespaces() as found:
        yield found


def test_ranks_of_two_machines_work_together_and_end_together(
    tmp_path: Path, network: Network
) -> None:
    with machines(tmp_path, "Chain", network=network) as both:
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


@pytest.mark.long
def test_a_step_that_takes_too_long_ends_both_machines(tmp_path: Path) -> None:
    options = ('{"kind": "hang", "ranks": [1]}', "--step-timeout", "0.5")
    with machines(tmp_path, "Troubled", "--options", *options) as both:
        both.push.put(backend.AbortBackendMsg(TROUBLE))
        assert all(both.exit_codes())
        told = both.told()
        assert "rank 1: step 0 has taken" in told
        assert "in hang" in told


@pytest.mark.long
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

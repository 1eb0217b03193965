"""CURVE keys: who is let in over tcp."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import zmq
from click.testing import CliRunner
from msgen.cli import main
from msgen.generated import backend
from msgen.runtime import QueueEmpty, SecurityError
from msgen.runtime.queues import ZmqAsyncPushQueue, ZmqPullQueue, ZmqPushQueue
from msgen.runtime.sockets import Curve, make_keys
from processes import GENEROUS


@pytest.fixture
def keys(tmp_path: Path) -> Callable[[str], tuple[Path, Path]]:
    return lambda name: make_keys(tmp_path / "keys", name)


def server(security: Curve) -> ZmqPullQueue[Any]:
    return ZmqPullQueue(
        "tcp://0.0.0.0:0", create=True, codec=backend.CODEC, security=security
    )


def loopback(pull: ZmqPullQueue[Any]) -> str:
    return f"tcp://127.0.0.1:{pull.addr.rpartition(':')[2]}"


def send(pull: ZmqPullQueue[Any], security: Curve | None) -> ZmqPushQueue[Any]:
    push = ZmqPushQueue(
        loopback(pull),
        create=False,
        codec=backend.CODEC,
        security=security,
        linger=0,
    )
    with suppress(SecurityError):  # It may be refused before it has put anything.
        push.put(backend.ExitMsg(), GENEROUS)
    return push


def test_who_knows_the_servers_key_is_let_in(keys: Any) -> None:
    public, secret = keys("server")
    with server(Curve.server(secret)) as pull, send(pull, Curve.client(public)):
        assert pull.get(GENEROUS) == backend.ExitMsg()


@pytest.mark.parametrize("how", ["files", "texts", "bytes"])
def test_with_a_list_only_those_on_it_are_let_in(keys: Any, how: str) -> None:
    public, secret = keys("server")
    mine_public, mine_secret = keys("mine")
    _, other_secret = keys("other")
    if how != "files":
        public, secret, mine_public, mine_secret, other_secret = (
            zmq.auth.load_certificate(path)[index]
            for path, index in (
                (public, 0),
                (secret, 1),
                (mine_public, 0),
                (mine_secret, 1),
                (other_secret, 1),
            )
        )
    if how == "texts":
        public, secret, mine_public, mine_secret, other_secret = (
            key.decode()
            for key in (public, secret, mine_public, mine_secret, other_secret)
        )
    with server(Curve.server(secret, clients=[mine_public])) as pull:
        for stranger in (
            Curve.client(public, other_secret),
            Curve.client(public),
            None,
        ):
            with send(pull, stranger), pytest.raises(QueueEmpty):
                pull.get(timeout=0.3)
        with send(pull, Curve.client(public, mine_secret)):
            assert pull.get(GENEROUS) == backend.ExitMsg()


def test_a_refused_client_is_told_instead_of_waiting_for_ever(keys: Any) -> None:
    public, secret = keys("server")
    known, _ = keys("known")
    _, other = keys("other")
    with (
        server(Curve.server(secret, clients=[known])) as pull,
        send(pull, Curve.client(public, other)) as push,
        pytest.raises(SecurityError, match="refused this end's key") as caught,
    ):
        while True:  # until the refusal has come
            push.put(backend.ExitMsg(), None)
    assert push.addr in str(caught.value)


async def put_until_refused(addr: str, security: Curve) -> None:
    async with ZmqAsyncPushQueue(
        addr, create=False, codec=backend.CODEC, security=security, linger=0
    ) as push:
        while True:
            await push.put(backend.ExitMsg(), None)


def test_a_refused_coroutine_is_told_as_well(keys: Any) -> None:
    public, secret = keys("server")
    known, _ = keys("known")
    _, other = keys("other")
    with (
        server(Curve.server(secret, clients=[known])) as pull,
        pytest.raises(SecurityError, match="refused this end's key"),
    ):
        asyncio.run(put_until_refused(loopback(pull), Curve.client(public, other)))


def test_servers_with_and_without_lists_live_side_by_side(keys: Any) -> None:
    public, secret = keys("server")
    mine_public, mine_secret = keys("mine")
    with (
        server(Curve.server(secret, clients=[mine_public])) as closed,
        server(Curve.server(secret)) as open_,
        server(Curve.server(secret, clients=[])) as shut,
        send(open_, Curve.client(public)),
        send(closed, Curve.client(public, mine_secret)),
        send(shut, Curve.client(public, mine_secret)),
    ):
        assert open_.get(GENEROUS) == backend.ExitMsg()
        assert closed.get(GENEROUS) == backend.ExitMsg()
        with pytest.raises(QueueEmpty):
            shut.get(timeout=0.3)


def test_a_client_refuses_a_server_with_another_key(keys: Any) -> None:
    _, secret = keys("server")
    other, _ = keys("other")
    with (
        server(Curve.server(secret)) as pull,
        send(pull, Curve.client(other)),
        pytest.raises(QueueEmpty),
    ):
        pull.get(timeout=0.3)


def test_keys_of_the_wrong_end_are_refused(keys: Any) -> None:
    public, secret = keys("server")
    with pytest.raises(SecurityError, match=r"end that binds; it needs Curve\.server"):
        server(Curve.client(public))
    with pytest.raises(SecurityError, match=r"connects; it needs Curve\.client"):
        ZmqPushQueue(
            "tcp://127.0.0.1:5",
            create=False,
            codec=backend.CODEC,
            security=Curve.server(secret),
        )


def test_bad_keys_are_refused(keys: Any, tmp_path: Path) -> None:
    public, _ = keys("server")
    with pytest.raises(SecurityError, match="holds a public key only"):
        Curve.server(public)
    for bad in ("nowhere", "x" * 39, "\x01" * 40, b"~" * 40, tmp_path):
        with pytest.raises(SecurityError, match="neither a key of 40 characters nor"):
            Curve.client(bad)
    (tmp_path / "broken").write_text('curve\n    public-key = "short"\n')
    with pytest.raises(SecurityError, match="holds a malformed key"):
        Curve.client(tmp_path / "broken")


def test_a_secret_key_is_not_shown(keys: Any) -> None:
    _, secret = keys("server")
    curve = Curve.server(secret)
    assert curve.secret.decode() not in repr(curve)


def test_the_command_makes_keys_that_only_the_user_can_read(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        main, ["keys", "--out", str(tmp_path / "new" / "keys"), "server", "client"]
    )
    assert done.exit_code == 0, done.output
    folder = tmp_path / "new" / "keys"
    assert {path.name for path in folder.iterdir()} == {
        "server.key",
        "server.key_secret",
        "client.key",
        "client.key_secret",
    }
    assert stat.S_IMODE((folder / "server.key_secret").stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / "server.key").stat().st_mode) == 0o644
    Curve.server(folder / "server.key_secret", clients=[folder / "client.key"])


def test_the_command_never_replaces_a_key(tmp_path: Path) -> None:
    public, secret = make_keys(tmp_path, "server")
    before = secret.read_text()
    public.unlink()
    done = CliRunner().invoke(main, ["keys", "--out", str(tmp_path), "server"])
    assert done.exit_code == 2
    assert "exists already; keys are never replaced" in done.output
    assert secret.read_text() == before
    assert not public.exists()
    done = CliRunner().invoke(main, ["keys", "--out", str(tmp_path), "../server"])
    assert done.exit_code == 2
    assert "expected a file's name, without a folder" in done.output
    assert [path.name for path in tmp_path.iterdir()] == ["server.key_secret"]


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = CliRunner().invoke(
        main, ["keys", "--out", str(tmp_path / "file" / "x"), "a"]
    )
    assert done.exit_code == 2

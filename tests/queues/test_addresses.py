"""Where queues meet, and who may bind there."""

from __future__ import annotations

import os
import socket
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq
from children import take_for_ever
from msgen.generated import backend
from msgen.runtime import AddressError, AddressInUse, InsecureAddress
from msgen.runtime.queues import ZmqPullQueue, ZmqPushQueue
from msgen.runtime.sockets import addresses, ipc_address
from processes import CONTEXT, GENEROUS, running, until


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for socket files that no other test uses, with a short path."""
    with tempfile.TemporaryDirectory(prefix="msgen-", dir="/tmp") as short:
        folder = Path(short) / "run"
        monkeypatch.setenv(addresses.FOLDER_VARIABLE, str(folder))
        yield folder


def pull(addr: str, **options: Any) -> ZmqPullQueue[Any]:
    return ZmqPullQueue(addr, create=True, codec=backend.CODEC, **options)


def test_both_ends_derive_the_same_address(folder: Path) -> None:
    address = ipc_address("backend", "run 1")
    assert ipc_address("backend", "run 1") == address
    assert address.startswith(f"ipc://{folder}/backend-")
    with pull(address) as queue, ZmqPushQueue(address, False, backend.CODEC) as push:
        push.put(backend.ExitMsg())
        assert queue.get(GENEROUS) == backend.ExitMsg()


def test_other_groups_and_runs_have_other_addresses() -> None:
    pairs = [
        ("a", "b"),
        ("ab", ""),
        ("", "ab"),
        ("a", "b2"),
        ("a/b", "c"),
        ("a_b", "c"),
        ("x" * 500, "y"),
        ("x" * 501, "y"),
        ("é", "\udc80"),
    ]
    found = {ipc_address(*pair) for pair in pairs}
    assert len(found) == len(pairs)
    for address in found:
        name = Path(address.removeprefix("ipc://")).name
        assert name.isascii()
        assert len(name) <= 41


def test_the_default_folder_is_short_and_the_users_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(addresses.FOLDER_VARIABLE)
    address = ipc_address("a group with a long name", "r" * 1000)
    assert address.startswith(f"ipc:///tmp/msgen-{os.getuid()}/")
    # The shorter limit of macOS holds everywhere.
    assert len(address.removeprefix("ipc://")) <= 103
    mode = Path(f"/tmp/msgen-{os.getuid()}").stat().st_mode
    assert stat.S_IMODE(mode) == 0o700


def test_the_folder_is_closed_to_others_whatever_the_umask(folder: Path) -> None:
    before = os.umask(0)
    try:
        ipc_address("a", "b")
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_folder_that_others_can_enter_is_refused(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o755)
    with pytest.raises(AddressError, match=r"mode 0755.*run: chmod 0700"):
        ipc_address("a", "b")


@pytest.mark.parametrize("kind", ["file", "link", "someone else's"])
def test_a_folder_that_is_not_the_users_is_refused(
    folder: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "file":
        folder.write_text("")
    elif kind == "link":
        (tmp_path / "target").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "target")
    else:
        folder.mkdir(mode=0o700)
        monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(AddressError, match="is not a folder of this user"):
        ipc_address("a", "b")


def test_a_folder_that_cannot_be_made_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(addresses.FOLDER_VARIABLE, str(tmp_path / "no" / "where"))
    with pytest.raises(AddressError, match="No such file or directory; set MSGEN_RUN"):
        ipc_address("a", "b")
    monkeypatch.setenv(addresses.FOLDER_VARIABLE, str(tmp_path / ("x" * 90)))
    with pytest.raises(AddressError, match="the system's limit for sockets is"):
        ipc_address("a", "b")


@pytest.mark.parametrize("create", [True, False])
def test_a_path_over_the_limit_is_refused_with_the_limit(create: bool) -> None:
    limit = 107 if sys.platform == "linux" else 103
    path = "/tmp/" + "é" * ((limit - 5) // 2) + "x"
    assert len(path) < limit < len(path.encode()) + 1
    longer = f"ipc://{path}xx"
    with pytest.raises(AddressError) as caught:
        ZmqPullQueue(longer, create, codec=backend.CODEC)
    assert longer in str(caught.value)
    assert f"the system's limit for sockets is {limit}" in str(caught.value)


@pytest.mark.parametrize(
    ("addr", "text"),
    [
        ("", "expected ipc://PATH, tcp://HOST:PORT"),
        ("/tmp/x", "expected ipc://PATH"),
        ("ipc://", "expected ipc://PATH"),
        ("ipc://*", "ipc_address gives both ends"),
        ("udp://1.2.3.4:5", "expected ipc://PATH"),
        ("ipc:///tmp/a\0b", "NUL"),
        ("tcp://127.0.0.1", "expected tcp://HOST:PORT"),
        ("tcp://:5555", "expected tcp://HOST:PORT"),
        ("tcp://127.0.0.1:http", "expected tcp://HOST:PORT"),
        ("tcp://127.0.0.1:65536", "port 65536 is above 65535"),
        ("tcp://127.0.0.1:123456", "expected tcp://HOST:PORT"),
    ],
)
def test_malformed_addresses_are_refused(addr: str, text: str) -> None:
    for create in (True, False):
        with pytest.raises(AddressError, match=text):
            ZmqPullQueue(addr, create, codec=backend.CODEC)


@pytest.mark.parametrize("addr", ["tcp://127.0.0.1:0", "tcp://127.0.0.1:*"])
def test_only_the_binding_end_may_leave_the_choice_open(addr: str) -> None:
    with pytest.raises(AddressError, match="`addr` says"):
        ZmqPushQueue(addr, create=False, codec=backend.CODEC)
    with pull(addr) as queue, ZmqPushQueue(queue.addr, False, backend.CODEC) as push:
        push.put(backend.ExitMsg())
        assert queue.get(GENEROUS) == backend.ExitMsg()


def test_a_name_that_nobody_knows_is_told() -> None:
    with pytest.raises(AddressError, match="cannot be bound"):
        pull("tcp://no.such.host.invalid:5555", insecure=True)


@pytest.mark.parametrize(
    "addr",
    [
        "tcp://*:0",
        "tcp://0.0.0.0:0",
        "tcp://[::]:0",
        "tcp://10.1.2.3:5",
        "tcp://eth9:5",
    ],
)
def test_an_address_that_others_reach_needs_keys(addr: str) -> None:
    with pytest.raises(InsecureAddress, match=r"Curve\.server.*127\.0\.0\.1.*insecure"):
        pull(addr)


def test_it_may_be_bound_in_the_clear_on_purpose() -> None:
    with pull("tcp://0.0.0.0:0", insecure=True) as queue:
        port = queue.addr.rpartition(":")[2]
        with ZmqPushQueue(f"tcp://127.0.0.1:{port}", False, backend.CODEC) as push:
            push.put(backend.ExitMsg())
            assert queue.get(GENEROUS) == backend.ExitMsg()


@pytest.mark.parametrize(
    "addr",
    ["tcp://127.0.0.1:0", "tcp://127.8.9.1:0", "tcp://localhost:0", "tcp://lo:0"],
)
def test_loopback_needs_none(addr: str) -> None:
    with pull(addr):
        pass


def test_loopback_over_ipv6() -> None:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    with (
        pull("tcp://[::1]:0") as queue,
        ZmqPushQueue(queue.addr, False, backend.CODEC) as push,
    ):
        push.put(backend.ExitMsg())
        assert queue.get(GENEROUS) == backend.ExitMsg()


def test_a_live_address_is_refused(tmp_path: Path) -> None:
    for addr in (f"ipc://{tmp_path}/q", "tcp://127.0.0.1:0", "inproc://q"):
        with pull(addr) as first:
            with pytest.raises(AddressInUse) as caught:
                pull(first.addr)
            if addr.startswith("ipc") and sys.platform == "linux":
                assert caught.value.pid == os.getpid()
                assert f"in use by process {os.getpid()}" in str(caught.value)
            with ZmqPushQueue(first.addr, False, backend.CODEC) as push:
                push.put(backend.ExitMsg())
                assert first.get(GENEROUS) == backend.ExitMsg()


def test_a_bare_sockets_address_is_live_too(tmp_path: Path) -> None:
    addr = f"ipc://{tmp_path}/q"
    with zmq.Context() as context, context.socket(zmq.PULL) as bare:
        bare.bind(addr)
        with pytest.raises(AddressInUse):
            pull(addr)


def test_the_file_of_a_killed_process_is_replaced(tmp_path: Path) -> None:
    addr = f"ipc://{tmp_path}/q"
    told = CONTEXT.Pipe()
    with running(take_for_ever, addr, True, told[1]) as process:
        until(lambda: (tmp_path / "q").exists())
        with pytest.raises(AddressInUse):
            pull(addr)
        process.kill()
        process.join()
        assert (tmp_path / "q").exists()
        with pull(addr) as queue, ZmqPushQueue(addr, False, backend.CODEC) as push:
            push.put(backend.ExitMsg())
            assert queue.get(GENEROUS) == backend.ExitMsg()
    assert not (tmp_path / "q").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="the system tells who listens")
def test_a_child_that_outlives_its_parent_does_not_keep_the_address(
    tmp_path: Path,
) -> None:
    """The child has inherited the listening socket, on which nobody answers."""
    path = tmp_path / "q"
    reading, writing = os.pipe()
    parent = os.fork()
    if parent == 0:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen()
        child = os.fork()
        if child == 0:
            os.close(reading)
            os.write(writing, b"up")
            os.read(os.pipe()[0], 1)  # Lives until it is killed.
        os.write(writing, b" %d" % child)
        os._exit(0)
    os.waitpid(parent, 0)
    said = b""
    while b"up" not in said or b" " not in said:
        said += os.read(reading, 100)
    child = int(said.replace(b"up", b""))
    try:
        with pull(f"ipc://{path}"):
            pass
    finally:
        os.kill(child, 9)
        os.close(reading)
        os.close(writing)


def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "q").write_text("precious")
    with pytest.raises(
        AddressError, match="not a socket; move it, or use another path"
    ):
        pull(f"ipc://{tmp_path}/q")
    assert (tmp_path / "q").read_text() == "precious"


def test_what_took_the_files_place_is_not_removed(tmp_path: Path) -> None:
    with pull(f"ipc://{tmp_path}/q"):
        (tmp_path / "q").unlink()
        (tmp_path / "q").write_text("someone else's")
    assert (tmp_path / "q").read_text() == "someone else's"


def test_stale_files_in_msgens_own_folder_are_removed(folder: Path) -> None:
    live = ipc_address("live", "run")
    with pull(live):
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(str(folder / "stale"))
        (folder / "note.txt").write_text("no socket")
        with pull(ipc_address("other", "run")):
            names = {path.name.partition("-")[0] for path in folder.iterdir()}
            assert names == {"live", "other", "note.txt"}


def test_of_many_binders_at_once_one_wins(tmp_path: Path) -> None:
    """Between looking and binding nobody comes in."""
    addr = f"ipc://{tmp_path}/q"
    for _ in range(10):
        started, start = os.pipe()
        ended, end = os.pipe()
        report, tell = os.pipe()
        children = []
        for _ in range(6):
            child = os.fork()
            if child == 0:
                os.close(start)
                os.close(end)
                os.read(started, 1)  # All begin when the parent closes its end.
                try:
                    kept = pull(addr)
                    os.write(tell, b"w" if kept.empty() else b"?")
                except AddressInUse:
                    os.write(tell, b"r")
                os.read(ended, 1)
                os.kill(os.getpid(), 9)
            children.append(child)
        os.close(start)
        outcomes = sorted(os.read(report, 1) for _ in children)
        os.close(end)
        for child in children:
            os.waitpid(child, 0)
        for descriptor in (started, ended, report, tell):
            os.close(descriptor)
        assert outcomes == [b"r"] * 5 + [b"w"]

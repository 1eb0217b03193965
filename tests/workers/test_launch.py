"""The life of a pool: how it stops, by whom, and what it leaves."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from children import user
from handlers import TROUBLE, token
from msgen.generated import backend, tokenizer
from msgen.runtime import WorkerError, WrongProcess
from msgen.runtime.launch import WorkerPool, main
from msgen.runtime.queues import ZmqPullQueue, ZmqPushQueue
from msgen.runtime.sockets import Curve, ipc_address, make_keys
from msgen.runtime.worker.rank.settings import PoolOptions
from pools import CODECS, serving
from processes import CONTEXT, GENEROUS, is_alive, until

TESTS = Path(__file__).parents[1] / "support"

pytestmark = pytest.mark.usefixtures("run_dir")


def test_a_pool_takes_its_options_by_name() -> None:
    assert signature(WorkerPool) == signature(PoolOptions)
    with pytest.raises(TypeError, match="rankz"):
        WorkerPool("handlers:Echo", rankz=2)  # type: ignore[call-arg]


def test_stop_lets_what_was_asked_be_done(ranks: int) -> None:
    with serving("Countdown", "drain", ranks=ranks) as served:
        served.ask(user(1, 300), user(2, 100))
        served.push.drain(GENEROUS)
        assert served.pool.stop()
        replies = served.replies(400)
        assert [each.uid for each in replies if each.finished] == [2, 1]
        assert served.pool.stop()
        assert not any(map(is_alive, served.pool.pids))
        assert served.pool.wait(0)


def test_stop_at_once_leaves_work_undone() -> None:
    with serving("Countdown", "at-once", ranks=2) as served:
        served.ask(user(1, 100_000_000))
        served.replies(1)
        assert served.pool.stop(drain=False)


def test_a_rank_that_does_not_stop_is_ended(caplog: pytest.LogCaptureFixture) -> None:
    with serving("Troubled", "hung", ranks=2, options={"kind": "hang"}) as served:
        served.ask(backend.AbortBackendMsg(TROUBLE))
        until(lambda: all(each.in_step for each in served.pool.stats))
        assert not served.pool.stop(timeout=0.1)
        assert not any(map(is_alive, served.pool.pids))
        served.pool.check()
    assert "ranks 0, 1 did not stop in order, and were ended" in caplog.text


def test_a_rank_that_ignores_termination_is_killed() -> None:
    with serving("Troubled", "deaf", options={"kind": "ignore_all"}) as served:
        served.ask(backend.AbortBackendMsg(TROUBLE))
        until(lambda: served.pool.stats[0].in_step)
        assert not served.pool.stop(timeout=0.1)
        assert not any(map(is_alive, served.pool.pids))


def test_a_handler_may_end_the_pool(ranks: int) -> None:
    with serving("Echo", "exit", ranks=ranks) as served:
        served.ask(backend.AbortBackendMsg(1), backend.ExitMsg())
        assert served.pool.wait(GENEROUS)
        assert served.replies(1) == [token(1)]
        served.pool.check()
        with pytest.raises(WorkerError, match="the pool has ended"):
            served.pool.ping()


def test_a_pool_is_started_once_and_used_when_started() -> None:
    with (
        serving("Echo", "once") as served,
        pytest.raises(ValueError, match="make a new"),
    ):
        served.pool.start()
    idle = WorkerPool("handlers:Echo", replies=ipc_address("replies", "x"), **CODECS)
    with pytest.raises(ValueError, match="is not started"):
        idle.ping()
    assert idle.stop()


def test_pools_leave_no_descriptors_behind() -> None:
    counts = []
    for number in range(6):
        with serving("Echo", f"again-{number}", ranks=2) as served:
            served.pool.ping(GENEROUS)
        counts.append(len(list(Path("/proc/self/fd").iterdir())))
    # Each would leave ten; ZeroMQ's own come and go a little later.
    assert counts[-1] - counts[1] < 8


def use_in_a_fork(pool: WorkerPool) -> None:
    child = os.fork()
    if child == 0:
        try:
            pool.ping()
        except WrongProcess:
            pool.stop()
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def fork_beside_a_pool(run_dir: str) -> None:
    os.environ["MSGEN_RUNTIME_DIR"] = run_dir
    with serving("Echo", "fork", start_method="spawn") as served:
        use_in_a_fork(served.pool)
        served.pool.ping(GENEROUS)


def test_a_forked_child_of_the_parent_leaves_the_pool_alone(run_dir: Path) -> None:
    process = CONTEXT.Process(target=fork_beside_a_pool, args=(str(run_dir),))
    process.start()
    process.join(GENEROUS)
    assert process.exitcode == 0


def test_a_program_that_forgets_its_pool_ends_it(run_dir: Path) -> None:
    script = (
        "import sys\n"
        "from msgen.runtime.launch import WorkerPool\n"
        "from pools import CODECS\n"
        "pool = WorkerPool('handlers:Echo', replies=sys.argv[1], **CODECS)\n"
        "if __name__ == '__main__':\n"
        "    pool.start()\n"
        "    print(*pool.pids)\n"
    )
    path = run_dir.parent / "forgets.py"
    path.write_text(script)
    done = subprocess.run(
        [sys.executable, path, ipc_address("replies", "forgets")],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=GENEROUS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not is_alive(int(done.stdout))


def test_a_program_that_the_ranks_cannot_import_is_told(run_dir: Path) -> None:
    """It starts a pool whenever it is imported."""
    path = run_dir.parent / "unguarded.py"
    path.write_text(
        "import sys\n"
        "from msgen.runtime.launch import WorkerPool\n"
        "from pools import CODECS\n"
        "WorkerPool('handlers:Echo', replies=sys.argv[1], **CODECS).start()\n"
    )
    done = subprocess.run(
        [sys.executable, path, ipc_address("replies", "unguarded")],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=GENEROUS,
        check=False,
    )
    assert done.returncode == 1
    assert "rank 0, while starting its process, ended with exit code 1; " in done.stderr
    assert "it needs: if __name__ == '__main__'" in done.stderr


def test_requests_over_tcp_have_keys_and_pings_get_through(tmp_path: Path) -> None:
    rank, rank_secret = make_keys(tmp_path, "rank")
    client, client_secret = make_keys(tmp_path, "client")
    with serving(
        "Echo",
        "keys",
        ranks=2,
        requests="tcp://127.0.0.1:0",
        requests_security=Curve.server(rank_secret, clients=[client]),
        security=Curve.client(rank, client_secret),
    ) as served:
        assert re.fullmatch(r"tcp://127\.0\.0\.1:\d+", served.pool.addr)
        served.ask(user(1, 3))
        assert served.replies(1) == [token(1)]
        served.pool.ping(GENEROUS)


# From the command line


@contextmanager
def program(run: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], Any]]:
    """Run `msgen.runtime.launch` in a session of its own, as a terminal would."""
    replies = ipc_address("replies", run)
    command = [sys.executable, "-m", "msgen.runtime.launch", "--replies", replies]
    command += ["--request-codec", CODECS["request_codec"]]
    command += ["--reply-codec", CODECS["reply_codec"]]
    with (
        ZmqPullQueue(replies, create=True, codec=tokenizer.CODEC) as pull,
        subprocess.Popen(
            [*command, *arguments],
            env={**os.environ, "PYTHONPATH": str(TESTS)},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield process, pull
        finally:
            process.kill()


def wait_for(process: subprocess.Popen[str], text: str) -> str:
    """Return the rest of the line in which the program logs a text."""
    assert process.stderr is not None
    for line in process.stderr:
        if text in line:
            return line.partition(text)[2].strip()
    raise AssertionError(f"the program ended without {text!r}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_ctrl_c_stops_in_order(number: signal.Signals) -> None:
    """The terminal sends it to the whole group, to the ranks as well."""
    options = ("--handler", "handlers:Countdown", "--ranks", "2")
    with program("one", *options) as (process, pull):
        addr = wait_for(process, "requests go to ")
        with ZmqPushQueue(addr, create=False, codec=backend.CODEC) as push:
            push.put(user(1, 900))
            assert pull.get(timeout=GENEROUS).next_token == 899
        os.killpg(process.pid, number)
        assert process.wait(GENEROUS) == 130
        left = pull.drain()
        assert [each.next_token for each in left] == list(range(898, -1, -1))


def test_two_ctrl_c_stop_at_once() -> None:
    options = ("--options", json.dumps({"kind": "hang"}), "--stop-timeout", "10000")
    with program("two", "--handler", "handlers:Troubled", *options) as (process, pull):
        addr = wait_for(process, "requests go to ")
        with ZmqPushQueue(addr, create=False, codec=backend.CODEC) as push:
            push.put(backend.AbortBackendMsg(1))
            assert pull.get(timeout=GENEROUS) == token(1)
            push.put(backend.AbortBackendMsg(TROUBLE))
        os.killpg(process.pid, signal.SIGINT)
        wait_for(process, "stopping in order")
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(GENEROUS) == 130


def test_ctrl_c_while_ranks_start_ends_them() -> None:
    options = ("--options", json.dumps({"kind": "setup-hang"}))
    with program("start", "--handler", "handlers:Troubled", *options) as (process, _):
        wait_for(process, "starting")
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(GENEROUS) == 130
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def test_the_command_line_says_what_is_wrong(
    capsys: pytest.CaptureFixture[str],
) -> None:
    required = ["--handler", "handlers:Echo", "--replies", "ipc:///tmp/x"]
    codecs = ["--reply-codec", "msgen.generated.tokenizer:CODEC", "--request-codec"]
    assert main([*required, *codecs, "nowhere:CODEC"]) == 2
    assert capsys.readouterr().err == "msgen: No module named 'nowhere'\n"
    with pytest.raises(SystemExit):
        main([*required, *codecs, CODECS["request_codec"], "--options", "[1]"])
    assert "expected a JSON object, got '[1]'" in capsys.readouterr().err


def test_the_command_line_tells_of_a_rank_that_failed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    replies = ipc_address("replies", "failed")
    required = ["--handler", "nowhere:Echo", "--replies", replies]
    codecs = ["--reply-codec", CODECS["reply_codec"]]
    assert main([*required, *codecs, "--request-codec", CODECS["request_codec"]]) == 1
    told = capsys.readouterr().err
    assert told.startswith("msgen: rank 0 failed while importing the handler: Mod")

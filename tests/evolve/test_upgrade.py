"""An upgrade as it happens: two processes that exchange messages, restarted one by one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from building import write_schema
from click.testing import CliRunner
from msgen.codegen.cli.commands import main

pytestmark = pytest.mark.processes

PEER = Path(__file__).parent / "upgrade_peer.py"
FIRST = {
    "jobs.yaml": """\
group: jobs
receiver: worker
senders: [client]
messages:
  Job:
    tag: 1
    fields:
      uid: int
      text: str
      best_of: {type: int, default: 1}
      options: Options
structs:
  Options:
    fields:
      depth: int
""",
    "replies.yaml": """\
group: replies
receiver: client
senders: [worker]
messages:
  Reply:
    tag: 1
    fields:
      seen: any
""",
}
SECOND = {
    "jobs.yaml": """\
group: jobs
receiver: worker
senders: [client]
version: 2
messages:
  Job:
    tag: 1
    fields:
      uid: int
      prompt: {type: str, was: text}
      best_of: {type: int, default: 1, removed: true}
      options: Options
      priority: {type: int, default: 5, since: 2}
  Flush:
    tag: 2
    since: 2
structs:
  Options:
    fields:
      depth: int
      width: {type: float, default: 0.5, since: 2}
""",
    "replies.yaml": """\
group: replies
receiver: client
senders: [worker]
version: 2
messages:
  Reply:
    tag: 1
    fields:
      seen: any
      more: {type: int, default: 7, since: 2}
""",
}


@dataclass
class Peer:
    """A running process of one version."""

    process: subprocess.Popen[str]

    def tell(self, line: str = "") -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """The generated modules of both versions, by version."""
    folders = {}
    for version, files in enumerate((FIRST, SECOND), 1):
        folder = tmp_path_factory.mktemp(f"v{version}")
        schema = write_schema(folder / "schema", files)
        assert CliRunner().invoke(main, ["build", str(schema)]).exit_code == 0
        folders[version] = folder
    return folders


@contextmanager
def running(role: str, modules: Path, folder: Path) -> Iterator[Peer]:
    """Run a peer until the end of the block; it must end by itself, without an error."""
    with subprocess.Popen(
        [sys.executable, str(PEER), role, str(modules), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            peer = Peer(process)
            assert peer.hear() == "ready"
            yield peer
            process.communicate(timeout=30)
            assert process.returncode == 0
        finally:
            process.kill()


def exchange(client: Peer, worker: Peer, **job: Any) -> dict[str, Any]:
    """Let the client send a job; return what it heard of the worker."""
    worker.tell()
    client.tell(json.dumps({"message": "Job", **job}))
    reply: dict[str, Any] = json.loads(client.hear())
    return reply


OLD_JOB = {"uid": 1, "text": "old", "best_of": 3, "options": {"depth": 2}}
NEW_JOB = {
    "uid": 2,
    "prompt": "new",
    "priority": 9,
    "options": {"depth": 4, "width": 8.0},
}


def test_one_side_after_the_other_is_upgraded(
    modules: dict[int, Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("up")
    with running("client", modules[1], folder) as client:
        with running("worker", modules[1], folder) as worker:
            for _ in range(3):
                reply = exchange(client, worker, **OLD_JOB)
                assert reply == {"seen": {"message": "Job", **OLD_JOB, "by": 1}}
        # The reader first: the client goes on at version 1, with the same sockets.
        with running("worker", modules[2], folder) as worker:
            for uid in range(3):
                reply = exchange(client, worker, **{**OLD_JOB, "uid": uid})
                assert reply["seen"] == {
                    "by": 2,
                    "message": "Job",
                    "uid": uid,
                    "prompt": "old",
                    "options": {"depth": 2, "width": 0.5},
                    "priority": 5,
                }
    with running("client", modules[2], folder) as client:
        with running("worker", modules[2], folder) as worker:
            reply = exchange(client, worker, **NEW_JOB)
            assert reply == {"seen": {"message": "Job", **NEW_JOB, "by": 2}, "more": 7}
        # And back: an older reader takes what a newer writer sends.
        with running("worker", modules[1], folder) as worker:
            for _ in range(3):
                reply = exchange(client, worker, **NEW_JOB)
                assert reply["more"] == 7
                assert reply["seen"] == {
                    "by": 1,
                    "message": "Job",
                    "uid": 2,
                    "text": "new",
                    "best_of": 1,
                    "options": {"depth": 4},
                }
            # What it does not know is refused, and does no harm to what comes after.
            worker.tell()
            client.tell(json.dumps({"message": "Flush"}))
            assert json.loads(client.hear())["seen"] == {
                "error": "UnknownMessage",
                "by": 1,
            }
            assert exchange(client, worker, **NEW_JOB)["seen"]["uid"] == 2


def test_the_diff_of_these_versions_says_so(tmp_path: Path) -> None:
    old = write_schema(tmp_path / "old", FIRST)
    new = write_schema(tmp_path / "schema", SECOND)
    result = CliRunner().invoke(main, ["diff", str(new), "--against", str(old)])
    assert result.exit_code == 0
    assert "[MESSAGE_ADDED]" in result.stdout
    assert "\nroll out: worker, then client\n" in result.stdout

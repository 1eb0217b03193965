"""One of two processes of the upgrade test: a worker that reads jobs, or a client that sends them.

Run as `python upgrade_peer.py ROLE MODULES FOLDER`, with the generated modules of its version in
MODULES. A client reads one JSON object a line from its standard input and sends it as a job; for
each it prints the reply as JSON. A worker ends when its standard input does.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys
from collections.abc import Callable
from typing import Any

from msgen.runtime import DecodeError
from msgen.runtime.queues import ZmqPullQueue, ZmqPushQueue

TIMEOUT = 20


def run_worker(jobs: Any, replies: Any, folder: str) -> None:
    """Answer every job with what was read of it."""
    with (
        ZmqPullQueue(f"ipc://{folder}/jobs", create=True, codec=jobs.CODEC) as pull,
        ZmqPushQueue(
            f"ipc://{folder}/replies", create=False, codec=replies.CODEC
        ) as push,
    ):
        print("ready", flush=True)
        for _ in sys.stdin:
            try:
                job = pull.get(timeout=TIMEOUT)
                seen = {"message": type(job).__name__, **dataclasses.asdict(job)}
            except DecodeError as error:
                seen = {"error": type(error).__name__}
            seen["by"] = jobs.CODEC.version
            push.put(replies.Reply(seen=seen), timeout=TIMEOUT)


def run_client(jobs: Any, replies: Any, folder: str) -> None:
    """Send jobs, and print the replies."""
    with (
        ZmqPullQueue(
            f"ipc://{folder}/replies", create=True, codec=replies.CODEC
        ) as pull,
        ZmqPushQueue(f"ipc://{folder}/jobs", create=False, codec=jobs.CODEC) as push,
    ):
        print("ready", flush=True)
        for line in sys.stdin:
            values = json.loads(line)
            message = getattr(jobs, values.pop("message"))
            if "options" in values:
                values["options"] = jobs.Options(**values["options"])
            push.put(message(**values), timeout=TIMEOUT)
            reply = pull.get(timeout=TIMEOUT)
            print(json.dumps(dataclasses.asdict(reply)), flush=True)


def main() -> None:
    role, modules, folder = sys.argv[1:]
    sys.path.insert(0, modules)
    roles: dict[str, Callable[[Any, Any, str], None]] = {
        "worker": run_worker,
        "client": run_client,
    }
    jobs = importlib.import_module("generated.jobs")
    replies = importlib.import_module("generated.replies")
    roles[role](jobs, replies, folder)


if __name__ == "__main__":
    main()

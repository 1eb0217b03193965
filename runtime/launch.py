"""Start workers: `WorkerPool` in a program, or this module from the command line.

    python -m msgen.runtime.launch --handler my.engine:Handler --ranks 2 ...
    torchrun --nnodes 2 ... -m msgen.runtime.launch --handler my.engine:Handler ...

Alone it runs a pool on this machine until Ctrl-C or SIGTERM. Started by torchrun it is one rank.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import secrets
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

from msgen.runtime.pool.pool import WorkerPool
from msgen.runtime.sockets.curve import Curve
from msgen.runtime.worker.rank.settings import (
    MAX_STEP_MESSAGES,
    READY_S,
    STOP_S,
    PoolOptions,
    make_plan,
)
from msgen.runtime.worker.rank.torchrun import VARIABLES, run_under_torchrun

from .errors import MsgenError, WorkerError

__all__ = ["WorkerPool", "main"]

_log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the process's exit code."""
    given = _parse(argv)
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    if all(name in os.environ for name in VARIABLES):
        # What it raises goes to torchrun, with its traceback.
        _run_rank(given)
        return 0
    try:
        return _run_pool(given)
    except WorkerError as error:
        print(f"msgen: {error}", file=sys.stderr)
        return 1
    except (MsgenError, ValueError, TypeError, ImportError) as error:
        print(f"msgen: {error}", file=sys.stderr)
        return 2


def _run_pool(given: argparse.Namespace) -> int:
    pool = WorkerPool(
        given.handler,
        replies=given.replies,
        request_codec=given.request_codec,
        reply_codec=given.reply_codec,
        **{**_options(given), "ranks": given.ranks},
    )
    _heed_signals(pool)
    try:
        _log.info("starting")
        with pool:
            _log.info("ready, requests go to %s", pool.addr)
            pool.wait()
    except KeyboardInterrupt:
        return 130
    return 0


def _heed_signals(pool: WorkerPool) -> None:
    """Stop in order at the first signal, at once at the second.

    Also where the shell ignores SIGINT for what it starts, as it does for background jobs.
    """
    signals = 0

    def heed(number: int, frame: FrameType | None) -> None:
        nonlocal signals
        signals += 1
        if signals > 1:
            pool.kill()
        else:
            # Not by the log, which may be in the middle of a line.
            os.write(2, b"msgen: stopping in order; once more stops at once\n")
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, heed)


def _run_rank(given: argparse.Namespace) -> None:
    from torch.distributed.elastic.multiprocessing.errors import record

    plan = make_plan(
        given.handler,
        secrets.token_hex(8),
        replies=given.replies,
        request_codec=given.request_codec,
        reply_codec=given.reply_codec,
        **_options(given),
    )
    # Tells torchrun what went wrong, which it shows for the first rank that failed.
    record(run_under_torchrun)(plan, given.host)


def _options(given: argparse.Namespace) -> PoolOptions:
    return {
        "requests": given.requests,
        "options": given.options,
        "device": given.device,
        "max_step_messages": given.max_step_messages,
        "ready_timeout": given.ready_timeout,
        "step_timeout": given.step_timeout,
        "stop_timeout": given.stop_timeout,
        "dead_letters": given.dead_letters,
        "requests_security": _server(given),
        "replies_security": _client(given),
    }


def _server(given: argparse.Namespace) -> Curve | None:
    """Return the keys of the requests' queue, which rank 0 binds."""
    if given.requests_key is None:
        return None
    return Curve.server(given.requests_key, clients=given.requests_client or None)


def _client(given: argparse.Namespace) -> Curve | None:
    """Return the keys of the replies' queue, to which rank 0 connects."""
    if given.replies_server is None:
        return None
    return Curve.client(given.replies_server, given.replies_key)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m msgen.runtime.launch",
        description="Run a handler in one process per rank, alone or under torchrun.",
    )
    add = parser.add_argument
    add("--handler", required=True, metavar="MODULE:CLASS")
    add("--request-codec", required=True, metavar="MODULE:CODEC")
    add("--reply-codec", required=True, metavar="MODULE:CODEC")
    add("--replies", required=True, metavar="ADDRESS", help="rank 0 connects to it")
    add("--requests", metavar="ADDRESS", help="rank 0 binds it (an own ipc address)")
    add("--options", type=_json, metavar="JSON", help="keyword arguments of the class")
    add("--ranks", type=int, default=1, help="how many, without torchrun (1)")
    add("--device", choices=("cpu", "cuda"), default="cpu")
    add("--max-step-messages", type=int, default=MAX_STEP_MESSAGES, metavar="N")
    add("--ready-timeout", type=float, default=READY_S, metavar="SECONDS")
    add("--step-timeout", type=float, metavar="SECONDS")
    add("--stop-timeout", type=float, default=STOP_S, metavar="SECONDS")
    add("--dead-letters", metavar="FILE", help="keep requests that are not valid")
    add("--requests-key", metavar="FILE", help="rank 0's secret key, for tcp")
    add("--requests-client", action="append", metavar="KEY", help="who may send")
    add("--replies-server", metavar="KEY", help="public key of who takes replies")
    add("--replies-key", metavar="FILE", help="rank 0's secret key towards it")
    add("--host", help="where other machines reach this one, under torchrun")
    return parser.parse_args(argv)


def _json(text: str) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError(f"expected a JSON object, got {text!r}")
    return found


if __name__ == "__main__":
    sys.exit(main())

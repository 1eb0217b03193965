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
from msgen.runtime.worker.rank.settings import PoolOptions, first_rank
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
    host = given.pop("host", None)
    if all(name in os.environ for name in VARIABLES):
        # What it raises goes to torchrun, with its traceback.
        _run_rank(_options(given), host)
        return 0
    try:
        return _run_pool(_options(given))
    except WorkerError as error:
        print(f"msgen: {error}", file=sys.stderr)
        return 1
    except (MsgenError, ValueError, TypeError, ImportError) as error:
        print(f"msgen: {error}", file=sys.stderr)
        return 2


def _run_pool(options: dict[str, Any]) -> int:
    pool = WorkerPool(**options)
    _stop_at_signals(pool)
    try:
        _log.info("starting")
        with pool:
            _log.info("ready, requests go to %s", pool.addr)
            pool.wait()
    except KeyboardInterrupt:
        return 130
    return 0


def _stop_at_signals(pool: WorkerPool) -> None:
    """Stop in order at the first signal, at once at the second.

    Also where the shell ignores SIGINT for what it starts, as it does for background jobs.
    """
    signals = 0

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal signals
        signals += 1
        if signals > 1:
            pool.kill()
        else:
            # Not by the log, which may be in the middle of a line.
            os.write(2, b"msgen: stopping in order; once more stops at once\n")
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)


def _run_rank(options: dict[str, Any], host: str | None) -> None:
    from torch.distributed.elastic.multiprocessing.errors import record

    # torchrun says how many ranks there are.
    options.pop("ranks", None)
    settings = first_rank(PoolOptions(**options), secrets.token_hex(8))
    # Tells torchrun what went wrong, which it shows for the first rank that failed.
    record(run_under_torchrun)(settings, host)


def _options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `PoolOptions`: those given, with the keys made of their files.

    Rank 0 binds the requests' queue, so it needs a server's keys there, and connects to the replies'.
    """
    key, clients = given.pop("requests_key", None), given.pop("requests_client", None)
    if key is not None:
        given["requests_security"] = Curve.server(key, clients=clients)
    server, key = given.pop("replies_server", None), given.pop("replies_key", None)
    if server is not None:
        given["replies_security"] = Curve.client(server, key)
    return given


def _parse(argv: Sequence[str] | None) -> dict[str, Any]:
    """Return what was given: an option that was not is left to the default of `PoolOptions`."""
    parser = argparse.ArgumentParser(
        prog="python -m msgen.runtime.launch",
        description="Run a handler in one process per rank, alone or under torchrun.",
        argument_default=argparse.SUPPRESS,
    )
    add = parser.add_argument
    add("--handler", required=True, metavar="MODULE:CLASS")
    add("--request-codec", required=True, metavar="MODULE:CODEC")
    add("--reply-codec", required=True, metavar="MODULE:CODEC")
    add("--replies", required=True, metavar="ADDRESS", help="rank 0 connects to it")
    add("--requests", metavar="ADDRESS", help="rank 0 binds it (an own ipc address)")
    add("--options", type=_json, metavar="JSON", help="keyword arguments of the class")
    add("--ranks", type=int, help="how many, without torchrun (1)")
    add("--device", choices=("cpu", "cuda"))
    add("--max-step-messages", type=int, metavar="N")
    add("--ready-timeout", type=float, metavar="SECONDS")
    add("--step-timeout", type=float, metavar="SECONDS")
    add("--stop-timeout", type=float, metavar="SECONDS")
    add("--dead-letters", metavar="FILE", help="keep requests that are not valid")
    add("--requests-key", metavar="FILE", help="rank 0's secret key, for tcp")
    add("--requests-client", action="append", metavar="KEY", help="who may send")
    add("--replies-server", metavar="KEY", help="public key of who takes replies")
    add("--replies-key", metavar="FILE", help="rank 0's secret key towards it")
    add("--host", help="where other machines reach this one, under torchrun")
    return vars(parser.parse_args(argv))


def _json(text: str) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError(f"expected a JSON object, got {text!r}")
    return found


if __name__ == "__main__":
    sys.exit(main())

"""A program that runs a pool, to be killed by tests: HANDLER RANKS REPLIES START_METHOD OPTIONS."""

from __future__ import annotations

import json
import sys

from msgen.runtime.launch import WorkerPool
from pools import CODECS


def main() -> None:
    handler, ranks, replies, start_method, options = sys.argv[1:]
    with WorkerPool(
        f"handlers:{handler}",
        replies=replies,
        ranks=int(ranks),
        options=json.loads(options),
        start_method=start_method,
        **CODECS,
    ) as pool:
        print(json.dumps([pool.addr, pool.pids]), flush=True)
        pool.wait()


if __name__ == "__main__":
    main()

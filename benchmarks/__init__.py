"""Benchmarks of msgen against what engines use today.

    python -m benchmarks                  all of it, then the plot and the figures in the documents
    python -m benchmarks.codec            encode and decode, against other codecs
    python -m benchmarks.queues           queues and broadcast, against bare sockets and gloo
    python -m benchmarks.workers          worker pools, against bare sockets
    python -m benchmarks.cli              the msgen command
    python -m benchmarks.report           the plot and the figures again, from results/*.json

Rivals take turns within each round, so compare figures of one run only. All take `--quick`,
`--rounds N`, `--only SECTION` and `--json FILE`.
"""

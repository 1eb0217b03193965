"""How many messages a second go from one process to another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from msgen.runtime import ENGINE

from ..output import Report, Row
from ..timing import in_turns, ratio_and_range, ratios
from .cases import BATCH, SMALL, TENSOR_4K, TENSOR_32K, TEXT_4K, TEXT_32K, make_cases
from .ends import BATCHES, CODEC, MSGEN, PYZMQ, Puller, Pusher, fresh_address
from .processes import Worker, close_parts

_WARM_UP = 10 * BATCH
_LEAST = 50 * BATCH
"""More than both ends hold: the sender has to wait as it would under load."""
_TARGETS = {
    SMALL: 0.7 if ENGINE == "native" else 0.5,
    TENSOR_4K: 0.85,
    TEXT_4K: 0.85,
    TENSOR_32K: 0.85,
    TEXT_32K: 0.85,
}


_COLUMNS = {
    "message": "{case}",
    "bytes": "{bytes:,}",
    "way": "{rival}",
    "messages/s": "{messages_per_s:,.0f}",
    "CPU us: send": "{send_cpu_us:.2f}",
    "receive": "{receive_cpu_us:.2f}",
    "x pyzmq": "{ratio:.2f}",
    "from": "{least_ratio:.2f}",
    "to": "{greatest_ratio:.2f}",
}


class Sample(NamedTuple):
    """One measurement."""

    rate: float
    send_cpu_s: float
    receive_cpu_s: float


def measure_rates(
    report: Report, players: Sequence[Worker], folder: Path, slice_s: float
) -> None:
    """Measure all cases in turns, each time through fresh sockets of the same two processes.

    Args:
        players: the sender and the receiver.
        slice_s: seconds of one measurement.
    """
    keys = [(case, rival) for case in make_cases() for rival in (PYZMQ, CODEC, MSGEN)]
    keys.insert(keys.index((SMALL, MSGEN)) + 1, (SMALL, BATCHES))
    counts = {
        key: enough(transfer(players, folder, *key, _LEAST).rate, slice_s, _LEAST)
        for key in keys
    }
    samples = in_turns(
        keys, report.rounds, lambda key: transfer(players, folder, *key, counts[key])
    )
    rows = []
    for case, rival in keys:
        rates, send_cpu_s, receive_cpu_s = zip(*samples[case, rival])
        base = [sample.rate for sample in samples[case, PYZMQ]]
        each = ratios(rates, base)
        row: Row = {"case": case, "bytes": len(make_cases()[case].data), "rival": rival}
        row["messages_per_s"] = median(rates)
        row["send_cpu_us"] = median(send_cpu_s) * 1e6
        row["receive_cpu_us"] = median(receive_cpu_s) * 1e6
        row |= ratio_and_range(each)
        rows.append(row)
        if rival == MSGEN:
            title = f"put and get, {case}: times pyzmq's rate"
            report.target(title, row["ratio"], least=_TARGETS[case])
    report.table(
        "rates",
        "put and get: from one process to another, from the first message to the last. "
        f"CPU: of the calling threads. {CODEC}: send(encode(msg)), decode(recv())",
        _COLUMNS,
        rows,
    )


def enough(rate: float, slice_s: float, least: int) -> int:
    """Return how many messages fill a slice, in whole batches."""
    return max(least, int(rate * slice_s) // BATCH * BATCH)


def transfer(
    players: Sequence[Worker], folder: Path, case: str, rival: str, messages: int
) -> Sample:
    """Send so many messages from the first of two processes to the second."""
    sender, receiver = players
    addr = fresh_address(folder)
    receiver.open(Puller, rival, case, addr)
    sender.open(Pusher, rival, case, addr)
    # This is the handshake, too: both ends are connected when it is over.
    receiver.begin("check", _WARM_UP)
    sender.ask("send", _WARM_UP)
    receiver.result()
    receiver.begin("receive", messages)
    send_cpu_s = sender.ask("send", messages)
    rate, receive_cpu_s = receiver.result()
    close_parts(players)
    return Sample(rate, send_cpu_s, receive_cpu_s)

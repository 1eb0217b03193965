"""How many messages a second go from one process to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

from msgen.runtime import ENGINE

from ..output import Report
from ..timing import in_turns, ratio, ratios
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


@dataclass
class RateRow:
    """One rival's figures for one message.

    Attributes:
        send_cpu_us: CPU time of the sending thread for each message, without ZeroMQ's own threads.
        receive_cpu_us: CPU time of the receiving thread.
        ratio: the rate divided by bare pyzmq's.
    """

    case: str
    bytes: int
    rival: str
    messages_per_s: float
    us: float
    send_cpu_us: float
    receive_cpu_us: float
    ratio: float
    least_ratio: float
    greatest_ratio: float


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
        rows.append(
            RateRow(
                case,
                len(make_cases()[case].data),
                rival,
                median(rates),
                1e6 / median(rates),
                median(send_cpu_s) * 1e6,
                median(receive_cpu_s) * 1e6,
                ratio(rates, base),
                min(each),
                max(each),
            )
        )
        if rival == MSGEN:
            title = f"put and get, {case}: times pyzmq's rate"
            report.target(title, rows[-1].ratio, least=_TARGETS[case])
    report.table(
        "rates",
        "put and get: from one process to another, from the first message to the last. "
        f"CPU: of the calling threads. {CODEC}: send(encode(msg)), decode(recv())",
        rows,
        ("message", "{0.case}"),
        ("bytes", "{0.bytes:,}"),
        ("way", "{0.rival}"),
        ("messages/s", "{0.messages_per_s:,.0f}"),
        ("us", "{0.us:.2f}"),
        ("CPU us: send", "{0.send_cpu_us:.2f}"),
        ("receive", "{0.receive_cpu_us:.2f}"),
        ("x pyzmq", "{0.ratio:.2f}"),
        ("from", "{0.least_ratio:.2f}"),
        ("to", "{0.greatest_ratio:.2f}"),
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

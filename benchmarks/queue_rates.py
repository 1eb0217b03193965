"""How many messages a second go from one process to another."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

from queue_cases import BATCH, SMALL, make_cases
from queue_ends import BATCHES, CODEC, MSGEN, PYZMQ, Puller, Pusher, fresh_address
from queue_workers import Worker, close_parts
from timing import ratio

_WARM_UP = 10 * BATCH
_LEAST = 50 * BATCH
"""More than both ends hold: the sender has to wait as it would under load."""


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
    send_cpu_us: float
    receive_cpu_us: float
    ratio: float
    least_ratio: float
    greatest_ratio: float


class _Sample(NamedTuple):
    """One measurement."""

    rate: float
    send_cpu_s: float
    receive_cpu_s: float


def measure_rates(
    players: Sequence[Worker], folder: Path, rounds: int, slice_s: float
) -> list[RateRow]:
    """Measure all cases in turns, each time through fresh sockets of the same two processes.

    Args:
        players: the sender and the receiver.
        slice_s: seconds of one measurement.
    """
    keys = [(case, rival) for case in make_cases() for rival in (PYZMQ, CODEC, MSGEN)]
    keys.insert(keys.index((SMALL, MSGEN)) + 1, (SMALL, BATCHES))
    counts = dict.fromkeys(keys, _LEAST)
    for key in keys:
        rate = _run(players, folder, key, counts[key]).rate
        counts[key] = max(_LEAST, int(rate * slice_s) // BATCH * BATCH)
    samples: dict[tuple[str, str], list[_Sample]] = {key: [] for key in keys}
    shuffle = random.Random(0).shuffle
    order = list(keys)
    for _ in range(rounds):
        shuffle(order)
        for key in order:
            samples[key].append(_run(players, folder, key, counts[key]))
    rows = []
    for case, rival in keys:
        these = [sample.rate for sample in samples[case, rival]]
        base = [sample.rate for sample in samples[case, PYZMQ]]
        each = [one / other for one, other in zip(these, base)]
        rows.append(
            RateRow(
                case,
                len(make_cases()[case].data),
                rival,
                median(these),
                median(sample.send_cpu_s for sample in samples[case, rival]) * 1e6,
                median(sample.receive_cpu_s for sample in samples[case, rival]) * 1e6,
                ratio(these, base),
                min(each),
                max(each),
            )
        )
    return rows


def _run(
    players: Sequence[Worker], folder: Path, key: tuple[str, str], messages: int
) -> _Sample:
    sender, receiver = players
    case, rival = key
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
    return _Sample(rate, send_cpu_s, receive_cpu_s)


def print_rates(rows: Sequence[RateRow]) -> None:
    print(
        "\nput and get: from one process to another, from the first message to the last"
    )
    print(
        f"  {'message':<16}{'bytes':>7}  {'way':<22}{'messages/s':>11}{'us':>7}"
        f"{'CPU us: send':>14}{'receive':>9}{'x pyzmq':>9}  (least to greatest)"
    )
    for row in rows:
        first = row.rival == PYZMQ
        print(
            f"  {row.case if first else '':<16}{f'{row.bytes:,}' if first else '':>7}  "
            f"{row.rival:<22}{row.messages_per_s:>11,.0f}{1e6 / row.messages_per_s:>7.2f}"
            f"{row.send_cpu_us:>14.2f}{row.receive_cpu_us:>9.2f}{row.ratio:>9.2f}"
            f"  ({row.least_ratio:.2f} to {row.greatest_ratio:.2f})"
        )
    print(
        f"  CPU: of the calling threads only. {CODEC}: what a program without queues would write, "
        "send(encode(message)) and decode(recv())"
    )

"""How many messages a second go from one process to another."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from queue_cases import BATCH, SMALL, make_cases
from queue_ends import BATCHES, CODEC, MSGEN, PYZMQ, Puller, Pusher, fresh_address
from queue_workers import Worker, close_parts
from timing import ratio

_WARM_UP = 10 * BATCH
_LEAST = 50 * BATCH
"""More than both ends hold: the sender has to wait as it would under load."""


@dataclass
class RateRow:
    """One rival's figures for one message; the ratio is its rate divided by bare pyzmq's."""

    case: str
    bytes: int
    rival: str
    messages_per_s: float
    ratio: float
    least_ratio: float
    greatest_ratio: float


def measure_rates(
    players: Sequence[Worker], folder: Path, rounds: int, slice_s: float
) -> list[RateRow]:
    """Measure all cases in turns, each time through fresh sockets of the same two processes.

    Args:
        players: the sender and the receiver.
        slice_s: seconds of one measurement.
    """
    keys = [(case, rival) for case in make_cases() for rival in (PYZMQ, CODEC, MSGEN)]
    keys.append((SMALL, BATCHES))
    counts = dict.fromkeys(keys, _LEAST)
    for key in keys:
        rate = _run(players, folder, key, counts[key])
        counts[key] = max(_LEAST, int(rate * slice_s) // BATCH * BATCH)
    rates: dict[tuple[str, str], list[float]] = {key: [] for key in keys}
    shuffle = random.Random(0).shuffle
    order = list(keys)
    for _ in range(rounds):
        shuffle(order)
        for key in order:
            rates[key].append(_run(players, folder, key, counts[key]))
    rows = []
    for case, rival in keys:
        these, base = rates[case, rival], rates[case, PYZMQ]
        each = [one / other for one, other in zip(these, base)]
        rows.append(
            RateRow(
                case,
                len(make_cases()[case].data),
                rival,
                median(these),
                ratio(these, base),
                min(each),
                max(each),
            )
        )
    return rows


def _run(
    players: Sequence[Worker], folder: Path, key: tuple[str, str], messages: int
) -> float:
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
    sender.ask("send", messages)
    rate: float = receiver.result()
    close_parts(players)
    return rate


def print_rates(rows: Sequence[RateRow]) -> None:
    print(
        "\nput and get: from one process to another, from the first message to the last"
    )
    print(
        f"  {'message':<17}{'bytes':>8}  {'way':<24}{'messages/s':>12}{'us':>8}"
        f"{'x pyzmq':>10}  {'(least to greatest)'}"
    )
    for row in rows:
        first = row.rival == PYZMQ
        print(
            f"  {row.case if first else '':<17}{f'{row.bytes:,}' if first else '':>8}  "
            f"{row.rival:<24}{row.messages_per_s:>12,.0f}{1e6 / row.messages_per_s:>8.2f}"
            f"{row.ratio:>10.2f}  ({row.least_ratio:.2f} to {row.greatest_ratio:.2f})"
        )
    print(
        f"  {CODEC}: what a program without queues would write, "
        "send(encode(message)) and decode(recv())"
    )

"""Compare msgen with other codecs: bytes per message, and time to encode and decode it.

All codecs encode the same values, and must give them back unchanged before anything is timed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from ..output import Report, Row
from ..timing import Task, interleave, ratio
from .cases import UID, Case, detokenize, make_cases, request
from .messages import Peer, convert, difference
from .peers import DICT, MSGSPEC, NATIVE, PYTHON, make_peers

_SMALL_UID = 7


class _Samples(NamedTuple):
    """One codec's times for one case, one figure a round."""

    encode: list[float]
    decode: list[float]
    round_trip: list[float]


_COLUMNS = {
    "codec": "{codec}",
    "bytes": "{bytes:,}",
    "encode us": "{encode_us:.2f}",
    "decode us": "{decode_us:.2f}",
    "x msgen: encode": "{encode_ratio:.2f}",
    "decode": "{decode_ratio:.2f}",
    "round trip": "{round_trip_ratio:.2f}",
}


def main() -> int:
    cases = {case.name: case for case in make_cases()}
    about = "Compare msgen with other codecs: bytes, encode and decode times."
    report = Report("codec", about, list(cases), rounds=15)
    peers = make_peers()
    for case in (cases[name] for name in report.sections):
        for peer in peers:
            problem = check_round_trip(case, peer)
            if problem is not None:
                print(f"bench: {peer.name}, {case.title}: {problem}", file=sys.stderr)
                return 1
        slice_s = 0.0005 if report.quick else 0.01
        samples = measure(case, peers, report.rounds, slice_s)
        report.table(case.name, case.title, _COLUMNS, make_rows(case, peers, samples))
        add_speed_targets(report, case, samples)
    add_size_targets(report, peers[0])
    report.finish()
    return 0


def check_round_trip(case: Case, peer: Peer) -> str | None:
    """Say what a peer gets wrong about a case's value, None where it is right."""
    coder = peer.coders[case.group]
    data = coder.encode(convert(case.value, peer.classes))
    if type(data) is not bytes:
        return f"expected bytes, got {type(data)}"
    decoded = coder.decode(data)
    problem = difference(case.value, decoded)
    if problem is None and hasattr(decoded, "input_ids"):
        # Writing to a decoded tensor must reach neither the bytes nor another tensor.
        other = coder.decode(data)
        decoded.input_ids.add_(1)
        problem = difference(case.value, other) or difference(
            case.value, coder.decode(data)
        )
    return problem


def measure(
    case: Case, peers: Sequence[Peer], rounds: int, slice_s: float
) -> dict[str, _Samples]:
    """Time all peers in turns."""
    tasks: dict[tuple[str, str], Task] = {}
    for peer in peers:
        coder = peer.coders[case.group]
        value = convert(case.value, peer.classes)
        tasks[peer.name, "encode"] = Task(coder.encode, value)
        tasks[peer.name, "decode"] = Task(coder.decode, coder.encode(value))
    times = interleave(tasks, rounds=rounds, slice_s=slice_s)
    samples = {}
    for peer in peers:
        encode, decode = times[peer.name, "encode"], times[peer.name, "decode"]
        both = [sum(pair) for pair in zip(encode, decode)]
        samples[peer.name] = _Samples(encode, decode, both)
    return samples


def make_rows(
    case: Case, peers: Sequence[Peer], samples: Mapping[str, _Samples]
) -> list[Row]:
    """Make a table. Ratios are times divided by those of the first peer, which is msgen."""
    first = samples[peers[0].name]
    rows = []
    for peer in peers:
        mine = samples[peer.name]
        data = peer.coders[case.group].encode(convert(case.value, peer.classes))
        row: Row = {"codec": peer.name, "bytes": len(data)}
        row["encode_us"] = median(mine.encode) * 1e6
        row["decode_us"] = median(mine.decode) * 1e6
        for what in _Samples._fields:
            row[f"{what}_ratio"] = ratio(getattr(mine, what), getattr(first, what))
        rows.append(row)
    return rows


def add_speed_targets(
    report: Report, case: Case, samples: Mapping[str, _Samples]
) -> None:
    """Say how many times as long as msgen's engines other codecs take, and should take."""
    for engine, against, what, least in (
        (NATIVE, MSGSPEC, "encode", case.encode),
        (NATIVE, MSGSPEC, "decode", case.decode),
        (NATIVE, DICT, "round_trip", case.round_trip),
        (PYTHON, DICT, "encode", case.python),
        (PYTHON, DICT, "decode", case.python),
    ):
        if least is not None and engine in samples:
            times = ratio(
                getattr(samples[against], what), getattr(samples[engine], what)
            )
            title = (
                f"{case.title}: {what.replace('_', ' ')}, {engine} against {against}"
            )
            report.target(title, times, least=least)


def add_size_targets(report: Report, msgen: Peer) -> None:
    """Take msgen's sizes; small numbers take fewer bytes, so with a small uid and another."""
    for uid in (_SMALL_UID, UID):
        for title, group, value, most in (
            ("request of 3 tokens", "backend", request(uid, 3), 45),
            ("DetokenizeMsg", "tokenizer", detokenize(uid), 12),
        ):
            data = msgen.coders[group].encode(convert(value, msgen.classes))
            report.target(f"{title}, uid {uid}: bytes", len(data), most=most)


if __name__ == "__main__":
    sys.exit(main())

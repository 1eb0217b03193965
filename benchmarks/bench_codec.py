"""Compare msgen with other codecs: bytes per message, and time to encode and decode it.

All codecs encode the same values, and must give them back unchanged before anything is timed.
Compare figures of one run only: the codecs take turns, so that they share the machine's moods.

    python benchmarks/bench_codec.py [--only CASE] [--rounds N] [--quick] [--cli] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

try:
    from cases import UID, Case, detokenize, make_cases, request
    from cli_times import time_commands
    from messages import Peer, convert, difference
    from peers import DICT, MSGSPEC, NATIVE, PYTHON, make_peers
    from timing import Task, interleave, machine_facts, ratio
except ModuleNotFoundError as missing:
    print(
        f"bench: the package {missing.name!r} is missing; run: pip install 'msgen[bench]'",
        file=sys.stderr,
    )
    sys.exit(2)

SMALL_UID = 7


@dataclass
class Row:
    """One codec's figures for one case; the ratios are its times divided by msgen's."""

    codec: str
    bytes: int
    encode_us: float
    decode_us: float
    encode_ratio: float
    decode_ratio: float
    round_trip_ratio: float


class _Samples(NamedTuple):
    """One codec's times for one case, one figure a round."""

    encode: list[float]
    decode: list[float]
    round_trip: list[float]

    @classmethod
    def of(cls, times: dict[tuple[str, str], list[float]], peer: Peer) -> _Samples:
        encode, decode = times[peer.name, "encode"], times[peer.name, "decode"]
        return cls(encode, decode, [sum(pair) for pair in zip(encode, decode)])


@dataclass
class SpeedTarget:
    """How many times faster than another codec one of msgen's engines is, and should be."""

    case: str
    engine: str
    against: str
    what: str
    times: float
    target: float


@dataclass
class SizeTarget:
    """How many bytes a message takes, and should take at most."""

    message: str
    bytes: int
    limit: int


def main(argv: Sequence[str] | None = None) -> int:
    cases = make_cases()
    options = _parse(argv, [case.name for case in cases])
    if options.only:
        cases = [case for case in cases if case.name == options.only]
    rounds = options.rounds or (2 if options.quick else 15)
    slice_s = 0.0005 if options.quick else 0.01

    peers = make_peers()
    for case in cases:
        for peer in peers:
            problem = check_round_trip(case, peer)
            if problem is not None:
                print(f"bench: {peer.name}, {case.title}: {problem}", file=sys.stderr)
                return 1

    facts = machine_facts()
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    print(
        f"medians of {rounds} rounds; 'x msgen' is a codec's time divided by msgen's in the "
        "same round"
    )
    tables: dict[str, list[Row]] = {}
    speeds: list[SpeedTarget] = []
    for case in cases:
        samples = measure(case, peers, rounds, slice_s)
        tables[case.name] = make_rows(case, peers, samples)
        print_table(case, tables[case.name])
        speeds += speed_targets(case, samples)
    sizes = size_targets(peers[0])
    print_targets(speeds, sizes)
    commands = {}
    if options.cli:
        commands = time_commands(1 if options.quick else rounds)
        print_commands(commands)
    if options.json:
        report = {
            "machine": facts,
            "rounds": rounds,
            "cases": {
                name: [asdict(row) for row in rows] for name, rows in tables.items()
            },
            "speed_targets": [asdict(speed) for speed in speeds],
            "size_targets": [asdict(size) for size in sizes],
            "commands_s": commands,
        }
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 0


def _parse(argv: Sequence[str] | None, names: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Compare msgen with other codecs: bytes, encode and decode times."
    )
    parser.add_argument("--only", choices=names, help="run one case")
    parser.add_argument("--rounds", type=int, help="rounds to take medians of (15)")
    parser.add_argument(
        "--quick", action="store_true", help="few, short rounds: a smoke test"
    )
    parser.add_argument(
        "--cli", action="store_true", help="time the msgen command as well"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the figures to a file, too"
    )
    options = parser.parse_args(argv)
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds: expected 1 or more")
    return options


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
    return {peer.name: _Samples.of(times, peer) for peer in peers}


def make_rows(
    case: Case, peers: Sequence[Peer], samples: Mapping[str, _Samples]
) -> list[Row]:
    """Make a table; the first peer is the one that the others are compared with."""
    first = samples[peers[0].name]
    rows = []
    for peer in peers:
        mine = samples[peer.name]
        size = len(peer.coders[case.group].encode(convert(case.value, peer.classes)))
        rows.append(
            Row(
                peer.name,
                size,
                median(mine.encode) * 1e6,
                median(mine.decode) * 1e6,
                ratio(mine.encode, first.encode),
                ratio(mine.decode, first.decode),
                ratio(mine.round_trip, first.round_trip),
            )
        )
    return rows


def speed_targets(case: Case, samples: Mapping[str, _Samples]) -> list[SpeedTarget]:
    def reached(
        engine: str, against: str, what: str, target: float | None
    ) -> list[SpeedTarget]:
        if target is None or engine not in samples:
            return []
        ours, theirs = samples[engine], samples[against]
        times = ratio(getattr(theirs, what), getattr(ours, what))
        return [SpeedTarget(case.title, engine, against, what, times, target)]

    return [
        *reached(NATIVE, MSGSPEC, "encode", case.encode),
        *reached(NATIVE, MSGSPEC, "decode", case.decode),
        *reached(NATIVE, DICT, "round_trip", case.round_trip),
        *reached(PYTHON, DICT, "encode", case.python),
        *reached(PYTHON, DICT, "decode", case.python),
    ]


def size_targets(msgen: Peer) -> list[SizeTarget]:
    """Take msgen's sizes; small numbers take fewer bytes, so with a small uid and another."""
    sizes = []
    for uid in (SMALL_UID, UID):
        for title, group, value, limit in (
            ("request of 3 tokens", "backend", request(uid, 3), 45),
            ("DetokenizeMsg", "tokenizer", detokenize(uid), 12),
        ):
            data = msgen.coders[group].encode(convert(value, msgen.classes))
            sizes.append(SizeTarget(f"{title}, uid {uid}", len(data), limit))
    return sizes


def print_table(case: Case, rows: Sequence[Row]) -> None:
    print(f"\n{case.title}")
    print(
        f"  {'codec':<20}{'bytes':>10}{'encode us':>12}{'decode us':>12}"
        f"{'x msgen: encode':>20}{'decode':>10}{'round trip':>13}"
    )
    for row in rows:
        print(
            f"  {row.codec:<20}{row.bytes:>10,}{row.encode_us:>12.2f}{row.decode_us:>12.2f}"
            f"{row.encode_ratio:>20.2f}{row.decode_ratio:>10.2f}{row.round_trip_ratio:>13.2f}"
        )


def print_targets(speeds: Sequence[SpeedTarget], sizes: Sequence[SizeTarget]) -> None:
    print("\ntargets: how many times faster than others")
    print(f"  {'message':<30}{'engine':<16}{'against':<16}{'what':<12}{'target':>6}")
    for speed in speeds:
        print(
            f"  {speed.case:<30}{speed.engine:<16}{speed.against:<16}"
            f"{speed.what.replace('_', ' '):<12}{speed.target:>6.1f}{speed.times:>8.2f}"
            f"  {_verdict(speed.times >= speed.target)}"
        )
    print("\ntargets: bytes")
    print(f"  {'message':<30}{'at most':>8}{'bytes':>10}")
    for size in sizes:
        print(
            f"  {size.message:<30}{size.limit:>8}{size.bytes:>10}"
            f"  {_verdict(size.bytes <= size.limit)}"
        )


def print_commands(commands: dict[str, float]) -> None:
    print("\ncommand line")
    for title, seconds in commands.items():
        print(f"  {title:<42}{seconds * 1e3:>10,.0f} ms")


def _verdict(good: bool) -> str:
    return "ok" if good else "MISSED"


if __name__ == "__main__":
    sys.exit(main())

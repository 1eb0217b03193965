"""What every benchmark has in common: its options, its tables and targets, and its JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

Row = dict[str, Any]
"""The figures of one way, by name."""

PACKAGES = ("torch", "numpy", "msgpack", "msgspec", "protobuf", "pyzmq", "uvloop")


@dataclass(frozen=True)
class Target:
    """A figure that was measured, and the least or the most that it should be."""

    what: str
    value: float
    least: float | None = None
    most: float | None = None

    @property
    def met(self) -> bool:
        return (self.least is None or self.value >= self.least) and (
            self.most is None or self.value <= self.most
        )


class Report:
    """The command line of one benchmark, and what it found: printed, and kept as JSON.

    Args:
        name: of the benchmark.
        about: one sentence for `--help`.
        sections: what `--only` takes.
        rounds: that medians are taken of; with `--quick` they are three.
    """

    def __init__(
        self, name: str, about: str, sections: Sequence[str], rounds: int
    ) -> None:
        parser = argparse.ArgumentParser(
            prog=f"python -m benchmarks.{name}", description=about
        )
        parser.add_argument("--only", choices=sections, help="run one section")
        parser.add_argument(
            "--rounds", type=int, help=f"rounds to take medians of ({rounds})"
        )
        parser.add_argument(
            "--quick", action="store_true", help="few, short rounds: a smoke test"
        )
        parser.add_argument(
            "--json", type=Path, metavar="FILE", help="write the figures to a file, too"
        )
        options = parser.parse_args()
        self.quick: bool = options.quick
        self.rounds: int = options.rounds or (3 if options.quick else rounds)
        if self.rounds < 1:
            parser.error("--rounds: expected 1 or more")
        self.sections = [options.only] if options.only else list(sections)
        self._json: Path | None = options.json
        self._machine = machine()
        self._tables: dict[str, Row] = {}
        self._targets: list[Target] = []
        print(", ".join(f"{fact} {value}" for fact, value in self._machine.items()))
        print(
            f"medians of {self.rounds} rounds; 'x' is one way's figure divided by the other's in "
            "the same round"
        )

    def table(
        self, section: str, title: str, columns: Mapping[str, str], rows: list[Row]
    ) -> None:
        """Keep a section's rows, and print them.

        Args:
            columns: by heading, the format of a row, such as `"{encode_us:.2f}"`.
        """
        self._tables[section] = {"title": title, "columns": columns, "rows": rows}
        print(f"\n{title}")
        print_columns(list(columns), cells(columns, rows))

    def target(
        self,
        what: str,
        value: float,
        *,
        least: float | None = None,
        most: float | None = None,
    ) -> None:
        self._targets.append(Target(what, value, least, most))

    def finish(self) -> None:
        """Print the targets, and write the JSON if it was asked for."""
        if self._targets:
            print("\ntargets")
            print_columns(
                ["what", "least", "most", "measured", ""],
                [
                    [
                        target.what,
                        "" if target.least is None else f"{target.least:g}",
                        "" if target.most is None else f"{target.most:g}",
                        f"{target.value:.2f}",
                        "ok" if target.met else "MISSED",
                    ]
                    for target in self._targets
                ],
            )
        if self._json is not None:
            found = {
                "machine": self._machine,
                "rounds": self.rounds,
                "tables": self._tables,
                "targets": [
                    asdict(target) | {"met": target.met} for target in self._targets
                ],
            }
            text = json.dumps(found, indent=1)
            self._json.write_text(f"{text}\n", encoding="utf-8")


def cells(columns: Mapping[str, str], rows: Iterable[Row]) -> list[list[str]]:
    """Spell rows."""
    return [[each.format_map(row) for each in columns.values()] for row in rows]


def print_columns(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print columns: those of numbers to the right, those of text to the left."""
    lines = [headings, *rows]
    columns = []
    for column in zip(*lines):
        width = max(map(len, column))
        texts = [cell for cell in column[1:] if cell]
        numbers = bool(texts) and all(
            cell.strip("0123456789.,") == "" for cell in texts
        )
        columns.append(
            [cell.rjust(width) if numbers else cell.ljust(width) for cell in column]
        )
    for line in zip(*columns):
        print(f"  {'  '.join(line)}".rstrip())


def machine() -> dict[str, str]:
    """Return what figures depend on: the CPU, and the versions of Python and of packages."""
    facts = {
        "CPU": _cpu_model(),
        "cores": str(os.cpu_count()),
        "Python": platform.python_version(),
    }
    for package in PACKAGES:
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            facts[package] = "none"
    return facts


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()

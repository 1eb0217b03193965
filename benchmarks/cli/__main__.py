"""How long the command line takes: its help, checks of this schema, a large build, a large diff."""

from __future__ import annotations

import subprocess
import sys
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from ..output import Report, Row
from ..timing import Task, interleave

GROUPS = 200
MESSAGES = 20

HELP = "msgen --help"
CHECK = "msgen build --check schema/"
AGAINST = "msgen check --against HEAD schema/"
BUILD = f"msgen build, {GROUPS} groups of {MESSAGES} messages"
DIFF = f"msgen diff against git, {GROUPS} groups of {MESSAGES} messages"
_TARGETS = {HELP: 150.0, CHECK: 300.0, BUILD: 5000.0}

_ROOT = Path(__file__).parents[2]
_MSGEN = [str(Path(sys.executable).with_name("msgen"))]
_LARGE_ROUNDS = 3
"""Each takes seconds."""

_COMMON = """\
group: common
doc: Types that several groups share.

structs:
  Options:
    doc: Settings of a message.
    fields:
      weight: {type: float, default: 1.0, doc: How much it counts.}
      limit: {type: int, default: -1, doc: At most so many.}
"""
_GROUP = """\
group: group{group}
receiver: worker{group}
senders: [driver]
doc: Messages of group {group}.
imports: [common]

messages:
"""
_MESSAGE = """\
  G{group}Message{number}:
    tag: {number}
    doc: Message {number} of the group.
    fields:
      uid: {{type: int, doc: Its number.}}
      text: {{type: "str | list[str]", doc: What it says.}}
      values: {{type: "tensor[float32, rows, 64]", doc: Numbers.}}
      options: {{type: Options, doc: Settings.}}
"""


def main() -> int:
    report = Report("cli", "Time the msgen command.", ("short", "large"), rounds=15)
    times: dict[str, list[float]] = {}
    if "short" in report.sections:
        times |= time_short(report.rounds)
    if "large" in report.sections:
        times |= time_large(min(report.rounds, _LARGE_ROUNDS))
    rows: list[Row] = []
    for title, samples in times.items():
        rows.append({"command": title, "ms": median(samples) * 1e3})
        if title in _TARGETS:
            report.target(f"{title}: ms", rows[-1]["ms"], most=_TARGETS[title])
    columns = {"command": "{command}", "ms": "{ms:,.0f}"}
    report.table("commands", "the msgen command", columns, rows)
    report.finish()
    return 0


def time_short(rounds: int) -> dict[str, list[float]]:
    """Time what people wait for most: help, and the checks of this repository's schema."""
    schema = str(_ROOT / "schema")
    commands = {
        HELP: ["--help"],
        CHECK: ["build", "--check", schema],
        AGAINST: ["check", schema, "--against", "HEAD"],
    }
    if not (_ROOT / ".git").exists():
        del commands[AGAINST]
    tasks = {
        title: Task(_run, [*_MSGEN, *arguments])
        for title, arguments in commands.items()
    }
    return interleave(tasks, rounds=rounds, slice_s=0)


def time_large(rounds: int) -> dict[str, list[float]]:
    """Time a build of a large schema, and its comparison with git."""
    with TemporaryDirectory(prefix="msgen-bench-") as name:
        folder = Path(name)
        schema = folder / "schema"
        write_schema(schema)
        _commit_and_change(folder, schema)
        numbers = count()

        def build(arguments: list[str]) -> None:
            # A new folder each time: one that is up to date is not written again.
            out = folder / f"out{next(numbers)}"
            _run([*arguments, "--out", str(out)])
            built = len(list(out.glob("group*.py")))
            if built != GROUPS:
                raise SystemExit(f"the large build made {built} of {GROUPS} modules")

        tasks: dict[str, Task] = {
            BUILD: Task(build, [*_MSGEN, "build", str(schema)]),
            DIFF: Task(_run, [*_MSGEN, "diff", str(schema), "--against", "HEAD"]),
        }
        return interleave(tasks, rounds=rounds, slice_s=0)


def write_schema(folder: Path) -> None:
    """Write a made-up schema, large and plain."""
    folder.mkdir()
    (folder / "common.yaml").write_text(_COMMON, encoding="utf-8")
    for group in range(GROUPS):
        parts = [_GROUP.format(group=group)]
        parts += [
            _MESSAGE.format(group=group, number=number) for number in range(MESSAGES)
        ]
        (folder / f"group{group}.yaml").write_text("".join(parts), encoding="utf-8")


def _commit_and_change(folder: Path, schema: Path) -> None:
    """Put a schema into a repository, then change a struct that all groups share."""
    identity = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]
    for arguments in (
        ["init", "--quiet"],
        ["add", "--all"],
        [*identity, "commit", "--quiet", "--message", "First"],
    ):
        _run(["git", "-C", str(folder), *arguments])
    common = schema / "common.yaml"
    text = common.read_text(encoding="utf-8")
    common.write_text(text.replace("type: float,", "type: f32,"), encoding="utf-8")


def _run(arguments: list[str]) -> Any:
    result = subprocess.run(arguments, capture_output=True, text=True, check=False)
    # 1 is a finding, such as a module that is out of date: no matter here.
    if result.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(arguments)} failed:\n{result.stderr}")
    return result


if __name__ == "__main__":
    sys.exit(main())

"""How long the command line takes: its help, checks of this schema, a large build, a large diff."""

from __future__ import annotations

import subprocess
import sys
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from timing import Task, interleave

GROUPS = 200
MESSAGES = 20

_ROOT = Path(__file__).resolve().parent.parent
_BUILD_ROUNDS = 3

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


def time_commands(rounds: int) -> dict[str, float]:
    """Return seconds per command, by a title; the large build is timed three times at most."""
    command = [_script()]
    schema = str(_ROOT / "schema")
    short = {
        "msgen --help": Task(_run, [*command, "--help"]),
        "msgen build --check schema/": Task(
            _run, [*command, "build", "--check", schema]
        ),
    }
    if (_ROOT / ".git").exists():
        arguments = ["check", schema, "--against", "HEAD"]
        short["msgen check --against HEAD schema/"] = Task(_run, [*command, *arguments])
    times = interleave(short, rounds=rounds, slice_s=0)
    with TemporaryDirectory(prefix="msgen-bench-") as folder:
        large = Path(folder) / "schema"
        write_schema(large)
        outs = count()

        def build(arguments: list[str]) -> None:
            # A new folder each time: one that is up to date is not written again.
            out = Path(folder) / f"out{next(outs)}"
            _run([*arguments, "--out", str(out)])
            built = len(list(out.glob("group*.py")))
            if built != GROUPS:
                raise SystemExit(f"the large build made {built} of {GROUPS} modules")

        title = f"msgen build, {GROUPS} groups of {MESSAGES} messages"
        task: Task = Task(build, [*command, "build", str(large)])
        long = {title: task}
        _commit_and_change(Path(folder), large)
        title = f"msgen diff against git, {GROUPS} groups of {MESSAGES} messages"
        long[title] = Task(_run, [*command, "diff", str(large), "--against", "HEAD"])
        times |= interleave(long, rounds=min(rounds, _BUILD_ROUNDS), slice_s=0)
    return {title: median(samples) for title, samples in times.items()}


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


def _script() -> str:
    """The msgen command that belongs to this Python."""
    script = Path(sys.executable).with_name("msgen")
    return str(script) if script.exists() else "msgen"


def _run(arguments: list[str]) -> Any:
    result = subprocess.run(arguments, capture_output=True, text=True, check=False)
    # 1 is a finding, such as a module that is out of date: no matter here.
    if result.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(arguments)} failed:\n{result.stderr}")
    return result

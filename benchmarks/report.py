"""From the figures in results/ to the plot, and to what README and docs/performance.md say of them.

In a document, what stands between `<!-- bench: NAME -->` and `<!-- end of bench -->` is written here.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from .output import Row, cells
from .plot import draw, times

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
_DOCUMENTS = ("README.md", "docs/performance.md")
_PLOT = "docs/performance.svg"

_MSGEN, _PYTHON = "msgen (native)", "msgen (python)"
_PEERS = {
    "msgspec": "msgspec",
    "vLLM-style msgpack": "vLLM-style",
    "protobuf": "protobuf",
    "dict + msgpack": "dict + msgpack",
    "pickle": "pickle",
}
_PANELS = ("detokenize", "request-1024", "batch-64", "conversation")


def main(check: bool = False) -> int:
    """Write the files; or, with `check`, only say which of them are out of date."""
    stale = 0
    for path, text in render().items():
        if not check:
            (ROOT / path).write_text(text, encoding="utf-8")
        elif (ROOT / path).read_text(encoding="utf-8") != text:
            print(f"{path} is not what benchmarks/results/ says: run make bench")
            stale = 1
    return stale


def render() -> dict[str, str]:
    """Return the plot and the documents as they should be, by their paths."""
    found = {
        name: json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("codec", "queues", "workers", "cli")
    }

    def section(match: re.Match[str]) -> str:
        start, name, end = match.groups()
        if name in _SECTIONS:
            text = _SECTIONS[name](found)
        else:
            benchmark, _, table = name.partition(".")
            text = _printed(found[benchmark]["tables"][table])
        return f"{start}\n{text}\n{end}"

    pattern = re.compile(
        r"(<!-- bench: (\S+) -->)\n.*?(<!-- end of bench -->)", re.DOTALL
    )
    files = {
        path: pattern.sub(section, (ROOT / path).read_text(encoding="utf-8"))
        for path in _DOCUMENTS
    }
    files[_PLOT] = _plot(found)
    return files


def _plot(found: Row) -> str:
    panels = {}
    for name in _PANELS:
        table = found["codec"]["tables"][name]
        by_codec = {row["codec"]: row for row in table["rows"]}
        panels[table["title"]] = {
            short: by_codec[codec]["round_trip_ratio"]
            for codec, short in _PEERS.items()
        }
    caption = "encode + decode: how many times as long as msgen others take, log scale"
    return draw(panels, caption)


def _figures(found: Row) -> str:
    """Three figures for the README."""
    tables = found["codec"]["tables"]
    token, request = (
        {row["codec"]: row for row in tables[name]["rows"]}
        for name in ("detokenize", "request-1024")
    )
    (step,) = (
        row
        for row in found["queues"]["tables"]["steps"]["rows"]
        if (row["others"], row["messages"], row["way"]) == (4, 4, "msgen")
    )

    def line(what: str, rows: Row, *codecs: str) -> list[str]:
        mine = rows[_MSGEN]["encode_us"] + rows[_MSGEN]["decode_us"]
        others = (
            f"{_PEERS[codec]} {times(rows[codec]['round_trip_ratio'])}"
            for codec in codecs
        )
        return [f"{what}: encode and decode", f"{mine:.2f} us", ", ".join(others)]

    return _table(
        ["", "msgen", "others, times as long"],
        [
            line(
                "a token on its way back", token, "msgspec", "dict + msgpack", "pickle"
            ),
            line(
                "a request with a tensor of 1,024 tokens",
                request,
                "msgspec",
                "vLLM-style msgpack",
                "pickle",
            ),
            [
                "4 messages to 4 ranks in one step",
                f"{step['us']:.0f} us",
                f"gloo collective + one PUB send per message {times(step['ratio'])}",
            ],
        ],
    )


def _machine(found: Row) -> str:
    machine = found["codec"]["machine"]
    facts = ", ".join(f"{name} {value}" for name, value in machine.items())
    rounds = ", ".join(f"{name} {each['rounds']}" for name, each in found.items())
    return f"Machine: {facts}. Rounds: {rounds}."


def _codec(found: Row) -> str:
    rows = []
    for table in found["codec"]["tables"].values():
        by_codec = {row["codec"]: row for row in table["rows"]}
        mine = by_codec[_MSGEN]
        cells = [table["title"], f"{mine['bytes']:,}"]
        cells.append(f"{mine['encode_us']:.2f} / {mine['decode_us']:.2f}")
        for codec in (*_PEERS, _PYTHON):
            row = by_codec[codec]
            cells.append(f"{times(row['encode_ratio'])} / {times(row['decode_ratio'])}")
        rows.append(cells)
    heads = ["message", "bytes", "msgen, us", *_PEERS.values(), "msgen in Python"]
    return _table(heads, rows)


def _targets(found: Row) -> str:
    rows = []
    for result in found.values():
        for target in result["targets"]:
            bound = [
                f"{word} {target[key]:g}"
                for key, word in (("least", "at least"), ("most", "at most"))
                if target[key] is not None
            ]
            verdict = "yes" if target["met"] else "**no**"
            rows.append(
                [target["what"], " ".join(bound), f"{target['value']:.2f}", verdict]
            )
    return _table(["what", "target", "measured", "met"], rows)


_SECTIONS: dict[str, Callable[[Row], str]] = {
    "figures": _figures,
    "machine": _machine,
    "codec": _codec,
    "targets": _targets,
}
"""What is put together here; all else is a table as the benchmark printed it."""


def _printed(table: Row) -> str:
    return _table(list(table["columns"]), cells(table["columns"], table["rows"]))


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))

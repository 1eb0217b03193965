"""The filter that wraps long lines: `ruff format` finds nothing to do, however long names are."""

from __future__ import annotations

import subprocess
import sys

import pytest
from msgen.codegen.emit.python.layout import code, docstring

# One line of each shape that is emitted. `aa`, `Bb` and `cc_dd` are put in at many lengths.
LINES = """\
@dataclass(slots=True, kw_only=True, eq=False)
class A(Bb):
    aa: Bb
    aa: Bb | None
    aa: list[Bb]
    aa: list[Bb | CcDd]
    aa: dict[str, list[Bb]]
    aa: tuple[Bb, CcDd, int]
    aa: Bb | CcDd | str | bytes | bool | dict[str, int] | list[dict[str, str]]
    aa: dict[str, list[dict[int, tuple[str, Bb | CcDd]]]]
    aa: Bb | None = None
    aa: list[Bb] = field(default_factory=list)
    aa: Bb = field(default_factory=lambda: Bb(cc_dd=1, aa=2))
    aa: tuple[Bb, CcDd] = (1, "aa, (cc_dd")
def f():
    aa = msg.aa
    aa: Any = msg.aa
    if type(aa) is not Bb:
        raise Unfit
    if type(aa) is not int or not I64_MIN <= aa <= I64_MAX:
        raise Unfit
    if not I64_MIN <= aa <= I64_MAX:
        raise Unfit
    if not isfinite(aa) or F32_MAX < abs(aa) < inf:
        raise Unfit
    if aa is not None and (type(aa) is not int or aa > I64_MAX):
        raise Unfit
    if aa is not None and type(aa) is not Bb:
        raise Unfit
    if type(aa) is not str and type(aa) is not bytes and type(aa) is not bool:
        raise Unfit
    if msg.aa.shape[0] != msg.cc_dd.shape[10]:
        raise Unfit
    for key, element in aa.items():
        as_plain(element)
    for item in aa:
        check_symbols(msg, CC_DD_RECORDS[Bb])
    aa = to_int(aa)
    aa = encode_tensor(msg.aa, torch.bfloat16, (None, None, None), frames, max_len=8)
    aa = cc_dd_to_slots(msg.aa, frames, depth - 1)
    aa = [cc_dd_to_slots(item, frames) for item in as_list(msg.aa)]
    aa = [None if item is None else cc_dd_to_slots(item) for item in as_list(msg.aa)]
    aa = {as_str(key): cc_dd_to_slots(item) for key, item in as_dict(msg.aa).items()}
    aa = _CC_DD_ENCODERS[type(msg.aa)](msg.aa, frames)
    aa = decode_member(aa, CC_DD_BY_NUMBER, Bb.cc_dd)
    aa, cc_dd, ee, ff, gg = slots
    return [1, aa, cc_dd, ee]
    return Bb(aa=aa, cc_dd=cc_dd)
    return (as_int(value[0], I64_MIN, I64_MAX), cc_dd_from_slots(value[1], frames))
    return same((self.aa, self.cc_dd), (other.aa, other.cc_dd))
def cc_dd_to_slots(msg: Bb, frames: FrameWriter | None) -> list[Any]:
    pass
def _decode_cc_dd_aa(value: Any) -> Any:
    pass
CcDdMsg: TypeAlias = Bb | CcDd | Ee
CC_DD_BY_NUMBER = {each.value: each for each in Bb}
_ENCODERS: Final[Encoders] = {Bb: aa_to_slots, CcDd: cc_dd_to_slots}
__all__ = ["CODEC", "Bb", "CcDd", "decode", "encode"]
CODEC: Final[Codec[BbMsg]] = Codec(group="cc_dd", records=CC_DD_RECORDS, removed={1: "Bb"})
CC_DD_RECORDS: Final[dict[type, table.Record]] = {**AA_RECORDS, Bb: table.Record("Bb", \
(table.Field("aa", table.List(table.Nullable(table.Struct(CcDd)))), table.Field("cc_dd", \
table.Tensor("int32", ("aa", 12), max_len=4), default=lambda: Bb(aa=1))), tag=3)}
"""


@pytest.mark.parametrize("length", range(2, 56, 4))
def test_ruff_would_wrap_lines_the_same_way(length: int) -> None:
    text = LINES.replace("\\\n", "")
    for name in ("aa", "Bb", "cc_dd", "CcDd", "CC_DD"):
        text = text.replace(name, name + name[-1] * (length - 2))
    wrapped = "\n".join(code(line) for line in text.splitlines()) + "\n"
    formatted = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--isolated", "--no-cache", "-"],
        input=wrapped,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert [line for line in formatted.splitlines() if line] == wrapped.splitlines()


def test_a_docstring_is_left_as_it_is() -> None:
    long = f"A word {'x' * 100} that is too long, with (brackets, and) commas."
    lines = f"class A:\n    {docstring(long, 4)}\n    x: int"
    assert code(lines) == lines


def test_a_string_with_a_docstrings_quotes_is_no_docstring() -> None:
    start = "    words: list[str] = field(default_factory=lambda: "
    items = ['\'x """\'', '"a second text that is long"', '"and a third one"']
    wrapped = [f"            {item}," for item in items]

    assert code(f"{start}[{', '.join(items)}])").splitlines() == [
        "    words: list[str] = field(",
        "        default_factory=lambda: [",
        *wrapped,
        "        ]",
        "    )",
    ]

"""The error classes themselves."""

from __future__ import annotations

import pickle

import pytest
from msgen.runtime import DecodeError, EncodeError, SchemaMismatch, UnknownMessage


@pytest.mark.parametrize("cls", [EncodeError, DecodeError])
def test_path_and_reason_are_one_line_and_cut_in_the_middle(
    cls: type[EncodeError | DecodeError],
) -> None:
    error = cls(
        "Start" + ".x" * 5_000 + ".end", "several\nlines\t" + "of text " * 1_000 + "!"
    )
    assert str(error) == f"{error.path}: {error.reason}"
    assert len(str(error)) < 1_000
    assert str(error).isprintable()
    assert error.path.startswith("Start.x.x")
    assert error.path.endswith(".x.end")
    assert "..." in error.path
    assert error.reason.startswith("several lines of text ")
    assert error.reason.endswith("of text !")


def test_attributes_survive_pickling() -> None:
    mismatch = SchemaMismatch("backend", "differs", "a" * 64, "abc124")
    again = pickle.loads(pickle.dumps(mismatch))
    assert (str(again), again.ours, again.theirs) == (str(mismatch), "a" * 64, "abc124")
    unknown = pickle.loads(pickle.dumps(UnknownMessage("backend", "no tag", 7)))
    assert (str(unknown), unknown.tag) == ("backend: no tag", 7)

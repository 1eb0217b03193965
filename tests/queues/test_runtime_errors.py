"""The error classes themselves."""

from __future__ import annotations

import pickle

import pytest
from msgen.runtime import (
    AddressInUse,
    DecodeError,
    EncodeError,
    MsgenError,
    PingTimeout,
    QueueClosed,
    QueueFull,
    RankLost,
    RankRefused,
    RankStalled,
    SchemaMismatch,
    StepDecodeError,
    StepGap,
    SubscribersMissing,
    UnknownMessage,
    WorkerError,
    WorkersNotReady,
    WrongThread,
)


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


@pytest.mark.parametrize(
    ("error", "attributes"),
    [
        (QueueFull("full", 3), ("sent",)),
        (AddressInUse("in use", 7), ("pid",)),
        (SubscribersMissing("missing", (1, 2)), ("ranks",)),
        (RankLost("lost", 1), ("rank",)),
        (RankRefused("refused", 1), ("rank",)),
        (RankStalled("stalled", (1,)), ("ranks",)),
        (StepGap("gap", 1, 2), ("expected", "got")),
        (
            StepDecodeError(3, [1], [(1, [b"x"], DecodeError("a", "b"))]),
            ("step", "messages"),
        ),
        (
            WorkerError("failed", 1, "ValueError", "bad", "trace", (1,), 7, -9),
            WorkerError._names,
        ),
        (WorkersNotReady("late", (1, 2), "stacks"), ("rank", "ranks", "traceback")),
        (PingTimeout("late", (0,)), ("rank", "ranks", "type")),
        (QueueClosed("closed"), ()),
        (WrongThread("thread"), ()),
    ],
)
def test_errors_of_queues_survive_pickling(
    error: MsgenError, attributes: tuple[str, ...]
) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    for name in attributes:
        assert getattr(again, name) == getattr(error, name)

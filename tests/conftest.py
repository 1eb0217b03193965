"""Fixtures of all tests, and hypothesis profiles.

`default` is repeatable; `search` looks at other examples every time.
"""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from building import Built, built
from golden import good_schema
from hypothesis import Phase, settings
from msgen.generated import backend
from msgen.runtime.queues import ZmqPullQueue

settings.register_profile("default", derandomize=True, print_blob=True)
settings.register_profile(
    "search", phases=(Phase.explicit, Phase.generate, Phase.shrink)
)
settings.register_profile("noshrink", phases=(Phase.explicit, Phase.generate))
settings.load_profile("default")

# A shell that starts a job in the background has it ignore Ctrl-C, and its children as well.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def everything_built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    """The golden schema that uses every feature, built and imported."""
    folder = tmp_path_factory.mktemp("golden")
    with built(folder, good_schema("everything", folder)) as modules:
        yield modules


@pytest.fixture(scope="session")
def everything(everything_built: Built) -> Any:
    """The module of its messages."""
    return everything_built.module("everything")


@pytest.fixture(scope="session")
def shared(everything_built: Built) -> Any:
    """The module of its shared types."""
    return everything_built.module("shared")


@pytest.fixture
def scalars(everything: Any, shared: Any) -> Any:
    """Makes a message with a field of every scalar type."""

    def make(**changes: Any) -> Any:
        values: dict[str, Any] = dict.fromkeys("bcdefghij", 0)
        values |= {
            "a": True,
            "k": 0.5,
            "z": 0.5,
            "m": "",
            "n": b"",
            "o": None,
            "p": 0.5,
        }
        values |= {
            "q": "",
            "r": b"",
            "s": shared.FinishReason.stop,
            "t": shared.Strict.a,
        }
        return everything.Scalars(**{**values, **changes})

    return make


@pytest.fixture
def containers(everything: Any, shared: Any) -> Any:
    """Makes a message with containers of every kind."""

    def make(**changes: Any) -> Any:
        field = shared.Field(type="x", list=[])
        values: dict[str, Any] = {
            "ints": [],
            "floats": [],
            "singles": [],
            "mixed": (0.5, 0.5, field),
            "one": (1,),
            "nested": {},
            "blobs": [],
            "blobmap": {},
            "structs": [],
            "by_reason": {},
            "flags": {},
            "maybe": None,
            "maybe_struct": None,
            "maybe_node": None,
            "tree": shared.Node(value=1, next=None),
            "anys": [],
            "enums": [],
            "limited": {},
            "tuples": [],
        }
        return everything.Containers(**{**values, **changes})

    return make


@pytest.fixture
def addr(tmp_path: Path) -> str:
    """An address that only this test uses."""
    return f"ipc://{tmp_path / 'q'}"


@pytest.fixture
def pull(addr: str) -> Iterator[ZmqPullQueue[Any]]:
    """A queue that is bound to the address."""
    with ZmqPullQueue(addr, create=True, codec=backend.CODEC) as queue:
        yield queue


@pytest.fixture
def run_dir(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of socket files, of this test alone; nothing may be left in it."""
    with tempfile.TemporaryDirectory(prefix="msgen-", dir="/tmp") as short:
        folder = Path(short) / "run"
        monkeypatch.setenv("MSGEN_RUNTIME_DIR", str(folder))
        yield folder
        assert not folder.exists() or not list(folder.iterdir())


@pytest.fixture(params=[1, 2])
def ranks(request: pytest.FixtureRequest) -> int:
    """How many ranks a pool has."""
    count: int = request.param
    return count

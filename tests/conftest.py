"""Fixtures of all tests, and hypothesis profiles.

`default` is repeatable; `search` looks at other examples every time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from building import Built, built
from hypothesis import Phase, settings

settings.register_profile("default", derandomize=True, print_blob=True)
settings.register_profile(
    "search", phases=(Phase.explicit, Phase.generate, Phase.shrink)
)
settings.register_profile("noshrink", phases=(Phase.explicit, Phase.generate))
settings.load_profile("default")

EVERYTHING = Path(__file__).parent / "golden" / "good" / "everything" / "schema"


@pytest.fixture(scope="session")
def everything_built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    """The golden schema that uses every feature, built and imported."""
    with built(tmp_path_factory.mktemp("everything"), EVERYTHING) as modules:
        yield modules


@pytest.fixture(scope="session")
def everything(everything_built: Built) -> Any:
    """The module of its messages."""
    return everything_built.module("everything")


@pytest.fixture(scope="session")
def shared(everything_built: Built) -> Any:
    """The module of its shared types."""
    return everything_built.module("shared")

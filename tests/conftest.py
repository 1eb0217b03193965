"""Hypothesis profiles: `default` is repeatable, `search` looks for what it never looked at."""

from __future__ import annotations

from hypothesis import Phase, settings

settings.register_profile("default", derandomize=True, print_blob=True)
settings.register_profile("search", max_examples=5_000)
settings.register_profile("noshrink", phases=(Phase.explicit, Phase.generate))
settings.load_profile("default")

"""Two models to changes, changes to findings: what a change means, for whom, and in which order.

`diff` takes two checked schemas. `changes` walks both and says what differs, judged by itself;
`findings` adds whom each change concerns, whose fingerprint sees it, and so what breaks;
`rollout` says which process goes first; `waivers` marks what `settings` says is wanted. Out comes a
`Diff`. The rows of the table of findings stand beside the functions that find them; `rules`
collects them. May import `schema`; knows neither git nor how findings are printed.
"""

from .changes import Change, ChangeRule
from .findings import diff
from .outcome import (
    BROKEN,
    DEPLOYMENT,
    OK,
    REFUSED,
    SOURCE,
    WIRE,
    Diff,
    Finding,
    GroupVerdict,
    Waiver,
)
from .rules import RULES
from .settings import UNKNOWN_RULE, load_waivers
from .waivers import apply_waivers

__all__ = [
    "BROKEN",
    "DEPLOYMENT",
    "OK",
    "REFUSED",
    "RULES",
    "SOURCE",
    "UNKNOWN_RULE",
    "WIRE",
    "Change",
    "ChangeRule",
    "Diff",
    "Finding",
    "GroupVerdict",
    "Waiver",
    "apply_waivers",
    "diff",
    "load_waivers",
]

"""Broadcast: rank 0 gives every other rank the same messages in the same step.

In come messages or frames at rank 0's `publisher`, out come the same at each `subscriber`. One step
is one multipart message (`steps` has its bytes), so a rank has all of it or nothing, and no
collective is needed to agree on how many messages there are. Frames are passed on as they came. The
publisher is an XPUB socket that never drops: a rank that does not keep up makes it wait. Steps are
numbered, so that a rank knows when one is missing.

Nothing is sent until every rank has announced itself to the `roster`; a rank that goes is noticed by
ZeroMQ taking its subscription back.

It imports `msgen.runtime.queues` and what that imports.
"""

from .publisher import StepPublisher
from .roster import RankState
from .steps import RawStep, decode_step
from .subscriber import StepSubscriber

__all__ = ["RankState", "RawStep", "StepPublisher", "StepSubscriber", "decode_step"]

"""A request to stop, which another thread or a signal's handler makes of a loop that may wait."""

from __future__ import annotations

import contextlib
import os


class StopRequest:
    """Tells a loop to stop, and wakes it.

    Attributes:
        asked: whether it is to stop once its work is done.
        at_once: whether it is to stop after the current step.
        descriptor: readable once it was asked.
    """

    def __init__(self) -> None:
        self.asked = False
        self.at_once = False
        self.descriptor, self._waker = os.pipe()
        os.set_blocking(self._waker, False)

    def drain(self) -> None:
        """Ask for a stop when nothing is left to do."""
        self.asked = True
        self._wake()

    def stop(self) -> None:
        """Ask for a stop after the current step."""
        self.at_once = True
        self.drain()

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._waker, b"\0")

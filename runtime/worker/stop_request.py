"""A request to stop, which another thread or a signal's handler makes of the worker's loop."""

from __future__ import annotations


class StopRequest:
    """Tells rank 0 to stop, which looks at it before each step, and ten times a second while idle.

    Attributes:
        asked: whether it is to stop once its work is done.
        at_once: whether it is to stop after the current step.
    """

    def __init__(self) -> None:
        self.asked = False
        self.at_once = False

    def drain(self) -> None:
        """Ask for a stop when nothing is left to do."""
        self.asked = True

    def stop(self) -> None:
        """Ask for a stop after the current step."""
        self.at_once = self.asked = True

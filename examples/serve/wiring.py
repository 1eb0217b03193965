"""What the processes of one server agree on: addresses, and the model's name and limits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from msgen.runtime.sockets import ipc_address


@dataclass(frozen=True)
class Wiring:
    """Handed from the launcher to each process.

    Attributes:
        run: an id that no other server has; the addresses follow from it.
        model: folder of the model.
        name: the model's name for clients.
        context: tokens that a request may come to, prompt and answer.
    """

    run: str
    model: str
    name: str
    context: int

    @property
    def tokenizer(self) -> str:
        """Where the tokenizer takes requests from the API server."""
        return ipc_address("tokenizer", self.run)

    @property
    def backend(self) -> str:
        """Where rank 0 takes requests from the tokenizer."""
        return ipc_address("backend", self.run)

    @property
    def detokenizer(self) -> str:
        """Where the detokenizer takes tokens from rank 0."""
        return ipc_address("detokenizer", self.run)

    @property
    def frontend(self) -> str:
        """Where the API server takes replies from both."""
        return ipc_address("frontend", self.run)

    def remove_files(self) -> None:
        """Remove what killed processes left; only once none is left. Nobody else has these addresses."""
        for addr in (self.tokenizer, self.backend, self.detokenizer, self.frontend):
            Path(addr.removeprefix("ipc://")).unlink(missing_ok=True)

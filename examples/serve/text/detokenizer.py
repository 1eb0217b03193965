"""The detokenizer's process: tokens to text, as they come.

A token of a byte-level BPE stands for bytes, which need not end where a character does. So each
request has a decoder that keeps the bytes of a character until all of them are there; a client
never gets half of one.
"""

from __future__ import annotations

import codecs
import json
import logging
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from msgen.generated import frontend, tokenizer
from msgen.runtime import DecodeError
from msgen.runtime.queues import ZmqPullQueue, ZmqPushQueue
from tokenizers import Tokenizer

from .. import child
from ..wiring import Wiring

_log = logging.getLogger(__name__)
_MOST_AT_ONCE = 256
"""Messages taken together: several steps of tokens of all running requests."""


def byte_of_character() -> dict[str, int]:
    """Return which byte each character stands for in the pieces of a byte-level BPE.

    Bytes that are printable in Latin-1 stand for themselves. The others, which would be blanks or
    control characters, are numbered from U+0100 up.
    """
    table = {
        chr(byte): byte
        for first, last in ((0x21, 0x7E), (0xA1, 0xAC), (0xAE, 0xFF))
        for byte in range(first, last + 1)
    }
    others = [byte for byte in range(256) if chr(byte) not in table]
    for number, byte in enumerate(others):
        table[chr(0x100 + number)] = byte
    return table


class Pieces:
    """The bytes of each token.

    Args:
        model: its folder.

    Raises:
        ValueError: the tokenizer is no byte-level BPE.
    """

    def __init__(self, model: Path) -> None:
        path = model / "tokenizer.json"
        tokenizer = Tokenizer.from_file(str(path))
        decoder = json.loads(path.read_text(encoding="utf-8"))["decoder"] or {}
        if decoder.get("type") != "ByteLevel":
            raise ValueError(f"{path}: expected a ByteLevel decoder, got {decoder}")
        table = byte_of_character()
        self._bytes: list[bytes] = []
        added = tokenizer.get_added_tokens_decoder()
        for token in range(tokenizer.get_vocab_size()):
            if token in added:
                # Special tokens are marks for the model, not text.
                text = "" if added[token].special else added[token].content
                self._bytes.append(text.encode())
            else:
                piece = tokenizer.id_to_token(token) or ""
                self._bytes.append(bytes(table[character] for character in piece))

    def __getitem__(self, token: int) -> bytes:
        """The bytes that a token stands for; none for a special one, or one that is unknown."""
        return self._bytes[token] if 0 <= token < len(self._bytes) else b""


class Detokenizer:
    """Makes replies of the scheduler's messages.

    Args:
        pieces: the bytes of each token.
    """

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._decoders: dict[int, codecs.IncrementalDecoder] = {}

    def __len__(self) -> int:
        """How many requests are under way."""
        return len(self._decoders)

    def replies(self, taken: Iterable[Any]) -> list[frontend.UserReply | Any]:
        """Return the replies to what came at once: one for each request with new text, and ends."""
        texts: dict[int, str] = {}
        replies: list[Any] = []
        for message in taken:
            if isinstance(message, tokenizer.DetokenizeMsg):
                text = self._decoder(message.uid).decode(
                    self._pieces[message.next_token]
                )
                texts[message.uid] = texts.get(message.uid, "") + text
            elif isinstance(message, tokenizer.FinishMsg):
                text = texts.pop(message.uid, "") + self._rest(message.uid)
                replies.append(_last_reply(message, text))
            elif isinstance(message, tokenizer.PongMsg):
                replies.append(frontend.FrontendPongMsg(message.uid, message.stats))
            else:
                _log.warning("a %s is not for the detokenizer", type(message).__name__)
        under_way = [
            frontend.UserReply(uid, text, finished=False)
            for uid, text in texts.items()
            if text
        ]
        return under_way + replies

    def _decoder(self, uid: int) -> codecs.IncrementalDecoder:
        if uid not in self._decoders:
            self._decoders[uid] = codecs.getincrementaldecoder("utf-8")("replace")
        return self._decoders[uid]

    def _rest(self, uid: int) -> str:
        """Forget a request; a character that never became complete is U+FFFD."""
        decoder = self._decoders.pop(uid, None)
        return "" if decoder is None else decoder.decode(b"", final=True)


def _last_reply(message: tokenizer.FinishMsg, text: str) -> frontend.UserReply:
    return frontend.UserReply(
        message.uid,
        text,
        finished=True,
        finish_reason=message.reason,
        prompt_tokens=message.prompt_tokens,
        completion_tokens=message.completion_tokens,
        failure=message.failure,
    )


def main(wiring: Wiring, pipe: Connection) -> None:
    """Be the detokenizer's process."""

    def work(ready: Callable[[], None]) -> None:
        detokenizer = Detokenizer(Pieces(Path(wiring.model)))
        with (
            ZmqPullQueue(
                wiring.detokenizer, create=True, codec=tokenizer.CODEC
            ) as tokens,
            ZmqPushQueue(wiring.frontend, create=False, codec=frontend.CODEC) as server,
        ):
            ready()
            while True:
                try:
                    taken = tokens.get_many(_MOST_AT_ONCE)
                except DecodeError as error:
                    _log.warning("a message was left out: %s", error)
                    continue
                replies = detokenizer.replies(taken)
                if replies:
                    server.put_many(replies)

    child.run(pipe, work)

"""The API server's end of the engine: requests out, replies in, each to the one who waits for it."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Coroutine
from typing import Any

from msgen.generated import frontend, tokenizer
from msgen.generated.common import EngineStats, FailureKind, SamplingParams
from msgen.runtime import DecodeError, EncodeError, QueueClosed, QueueFull
from msgen.runtime.queues import ZmqAsyncPullQueue, ZmqAsyncPushQueue

from ..wiring import Wiring
from .errors import ApiError, unavailable

_log = logging.getLogger(__name__)
_MOST_AT_ONCE = 256
"""Replies taken together: as many as the detokenizer sends at once."""
_PUT_S = 10.0
"""How long a request may wait for room in the queue, before its client is told that none is there."""


class Generation:
    """One request under way: an iterator over its replies, the last of which is `finished`.

    Attributes:
        uid: the request's number.
    """

    def __init__(self, uid: int) -> None:
        self.uid = uid
        self._replies: asyncio.Queue[frontend.UserReply | ApiError | None] = (
            asyncio.Queue()
        )

    def feed(self, item: frontend.UserReply | ApiError | None) -> None:
        """Hand over a reply, an error to raise, or None: there will be no more."""
        self._replies.put_nowait(item)

    async def __aiter__(self) -> AsyncIterator[frontend.UserReply]:
        while (item := await self._replies.get()) is not None:
            if isinstance(item, ApiError):
                raise item
            if item.failure is not None:
                raise _api_error(item)
            yield item
            if item.finished:
                return


class EngineClient:
    """Sends requests to the engine and deals out its replies.

    Args:
        wiring: addresses; the queues are open from here on, on this event loop.
    """

    def __init__(self, wiring: Wiring) -> None:
        self._replies: ZmqAsyncPullQueue[frontend.FrontendMsg] = ZmqAsyncPullQueue(
            wiring.frontend, create=True, codec=frontend.CODEC
        )
        self._requests: ZmqAsyncPushQueue[tokenizer.TokenizerMsg] = ZmqAsyncPushQueue(
            wiring.tokenizer, create=False, codec=tokenizer.CODEC
        )
        self._under_way: dict[int, Generation] = {}
        self._pings: dict[int, asyncio.Future[EngineStats]] = {}
        self._failure: ApiError | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._start(self._read())

    async def generate(
        self, messages: list[dict[str, str]], params: SamplingParams
    ) -> Generation:
        """Send a request.

        Raises:
            ApiError: it cannot be encoded, or the engine takes none.
        """
        # Not counted: the number seeds the choice of tokens, and is no one's to guess.
        generation = Generation(secrets.randbits(62))
        self._under_way[generation.uid] = generation
        try:
            await self._put(tokenizer.TokenizeMsg(generation.uid, messages, params))
        except BaseException:
            self._under_way.pop(generation.uid, None)
            raise
        return generation

    def abort(self, generation: Generation) -> None:
        """Have the engine drop a request whose client has gone; does nothing if it has ended."""
        if self._under_way.pop(generation.uid, None) is not None:
            generation.feed(None)
            self._start(self._put(tokenizer.AbortMsg(generation.uid)))

    def finish(self, generation: Generation) -> None:
        """Have the engine end a request early; its last reply comes all the same."""
        if generation.uid in self._under_way:
            self._start(self._put(tokenizer.AbortMsg(generation.uid)))

    async def ping(self, timeout: float) -> EngineStats:
        """Send a question through tokenizer, all ranks and detokenizer, and wait for the answer.

        Args:
            timeout: seconds.

        Raises:
            ApiError: there was none in time, or the engine has failed.
        """
        uid = secrets.randbits(62)
        future = asyncio.get_running_loop().create_future()
        self._pings[uid] = future
        try:
            await self._put(tokenizer.PingMsg(uid))
            return await asyncio.wait_for(future, timeout)
        except asyncio.TimeoutError:
            raise unavailable(
                f"the engine did not answer a ping within {timeout:g} s"
            ) from None
        finally:
            del self._pings[uid]

    def fail(self, text: str) -> None:
        """End all that is under way with an error, and refuse what comes."""
        self._failure = unavailable(text)
        for generation in self._under_way.values():
            generation.feed(self._failure)
        self._under_way.clear()
        for future in self._pings.values():
            if not future.done():
                future.set_exception(self._failure)

    async def stop(self) -> None:
        """Close the queues."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._replies.stop()
        self._requests.stop()

    async def _put(self, message: tokenizer.TokenizerMsg) -> None:
        if self._failure is not None:
            raise self._failure
        try:
            await self._requests.put(message, timeout=_PUT_S)
        except EncodeError as error:
            raise ApiError(f"the request cannot be sent on: {error}") from error
        except (QueueFull, QueueClosed) as error:
            raise unavailable(f"the engine takes no requests: {error}") from error

    async def _read(self) -> None:
        while True:
            try:
                taken = await self._replies.get_many(_MOST_AT_ONCE)
            except DecodeError as error:
                _log.warning("a reply was left out: %s", error)
                continue
            for reply in taken:
                self._deal_out(reply)

    def _deal_out(self, reply: frontend.FrontendMsg) -> None:
        if isinstance(reply, frontend.UserReply):
            # One that is not here was aborted meanwhile.
            generation = self._under_way.get(reply.uid)
            if generation is not None:
                if reply.finished:
                    del self._under_way[reply.uid]
                generation.feed(reply)
        elif isinstance(reply, frontend.FrontendPongMsg):
            future = self._pings.get(reply.uid)
            if future is not None and not future.done():
                future.set_result(reply.stats)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine beside the caller, who may be about to be cancelled."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error(
                "a task of the engine's client failed", exc_info=task.exception()
            )


def _api_error(reply: frontend.UserReply) -> ApiError:
    assert reply.failure is not None
    text = reply.failure.text
    if reply.failure.kind is FailureKind.too_long:
        return ApiError(text, param="messages", code="context_length_exceeded")
    if reply.failure.kind is FailureKind.invalid:
        return ApiError(text, param="messages", code="invalid_prompt")
    if reply.failure.kind is FailureKind.busy:
        return ApiError(text, status=429, kind="rate_limit_error", code="engine_busy")
    return ApiError(text, status=500, kind="server_error", code="engine_error")

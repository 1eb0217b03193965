"""The API server's process: OpenAI's chat completions over HTTP, answered by the engine.

| path | what it does |
|---|---|
| POST `/v1/chat/completions` | an answer, whole or streamed |
| GET `/v1/models` | the one model |
| GET `/health` | 200 once a ping went through tokenizer, all ranks and detokenizer; else 503 |
| GET `/stats` | what the scheduler says of itself, by such a ping |
"""

from __future__ import annotations

import asyncio
import dataclasses
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import uvicorn
from msgen.generated.frontend import UserReply
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from .. import child
from ..wiring import Wiring
from .chat_request import parse
from .chat_response import Answer, event
from .engine_client import EngineClient
from .errors import ApiError
from .stop_text import until_stop

MOST_BODY_BYTES = 4 << 20
"""Bytes of the largest request that is read: far more text than a context has room for."""

_CLOSING_S = 3
"""What answers under way get to reach their clients, before connections are closed."""
_NO_ANSWER = Response(status_code=499)
"""What a client gets that is not there any more."""


class ApiServer:
    """The routes of one server.

    Args:
        wiring: addresses, and the model's name and limits.
        ping_timeout: seconds that the engine gets to answer /health and /stats.
    """

    def __init__(self, wiring: Wiring, ping_timeout: float) -> None:
        self._wiring = wiring
        self._ping_timeout = ping_timeout
        self._started = int(time.time())
        self.engine: EngineClient | None = None
        self.app = Starlette(
            routes=[
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/v1/models", self._models),
                Route("/v1/models/{name:path}", self._model),
                Route("/health", self._health),
                Route("/stats", self._stats),
            ],
            exception_handlers={
                ApiError: _answer_error,
                HTTPException: _answer_http_error,
                Exception: _answer_fault,
            },
            lifespan=self._open_engine,
        )

    @asynccontextmanager
    async def _open_engine(self, app: Starlette) -> AsyncIterator[None]:
        self.engine = EngineClient(self._wiring)
        try:
            yield
        finally:
            await self.engine.stop()

    async def _chat(self, request: Request) -> Any:
        engine = self._open()
        asked = parse(await _read_body(request), self._wiring.context)
        self._check_model(asked.model)
        generation = await engine.generate(asked.messages, asked.params)
        answer = Answer(generation.uid, asked.model, asked.include_usage)
        replies = aiter(generation)
        if asked.stops:
            finish = partial(engine.finish, generation)
            replies = until_stop(replies, asked.stops, finish)
        # When this task ends, also by being cancelled, what is left of the request is dropped.
        gone = asyncio.create_task(_until_disconnected(request))
        gone.add_done_callback(lambda _: engine.abort(generation))
        try:
            if asked.stream:
                return await _streamed(answer, replies, gone)
            response = await _whole(answer, replies)
        except BaseException:
            gone.cancel()
            raise
        gone.cancel()
        return response

    def _open(self) -> EngineClient:
        assert self.engine is not None  # Requests come while the application lives.
        return self.engine

    def _check_model(self, name: str) -> None:
        if name != self._wiring.name:
            raise ApiError(
                f"model: there is no {name!r} here; this server has {self._wiring.name!r}",
                status=404,
                param="model",
                code="model_not_found",
            )

    async def _models(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [self._described()]})

    async def _model(self, request: Request) -> Response:
        self._check_model(request.path_params["name"])
        return JSONResponse(self._described())

    def _described(self) -> dict[str, Any]:
        return {
            "id": self._wiring.name,
            "object": "model",
            "created": self._started,
            "owned_by": "msgen",
            "context_length": self._wiring.context,
        }

    async def _health(self, request: Request) -> Response:
        try:
            stats = await self._open().ping(self._ping_timeout)
        except ApiError as error:
            body = {"status": "unavailable", "reason": error.text}
            return JSONResponse(body, error.status)
        return JSONResponse({"status": "ok", "ranks": stats.ranks})

    async def _stats(self, request: Request) -> Response:
        stats = await self._open().ping(self._ping_timeout)
        return JSONResponse(dataclasses.asdict(stats))


async def _whole(answer: Answer, replies: AsyncIterator[UserReply]) -> Response:
    text = ""
    async for reply in replies:
        text += reply.incremental_output
        if reply.finished:
            return JSONResponse(answer.whole(text, reply))
    return _NO_ANSWER


async def _streamed(
    answer: Answer, replies: AsyncIterator[UserReply], gone: asyncio.Task[None]
) -> Any:
    """Return the response once there is a reply: what fails before has a status of its own."""
    try:
        first = await anext(replies)
    except StopAsyncIteration:
        return _NO_ANSWER
    return EventStream(answer, first, replies, gone)


class EventStream:
    """A response whose events are sent as replies come.

    Args:
        answer: makes the events.
        first: the first reply, which has come.
        replies: those behind it; they end early once the client has gone.
        gone: the task that waits for the client to go; cancelled at the end.
    """

    def __init__(
        self,
        answer: Answer,
        first: UserReply,
        replies: AsyncIterator[UserReply],
        gone: asyncio.Task[None],
    ) -> None:
        self._answer = answer
        self._first = first
        self._replies = replies
        self._gone = gone

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-cache"),
        ]
        try:
            await send(
                {"type": "http.response.start", "status": 200, "headers": headers}
            )
            async for data in self._events():
                await _send_body(send, data, more=True)
            await _send_body(send, b"", more=False)
        except OSError:
            pass  # The client has gone, and the server says so in this way.
        finally:
            self._gone.cancel()

    async def _events(self) -> AsyncIterator[bytes]:
        yield self._answer.first()
        reply = self._first
        try:
            while True:
                if reply.incremental_output:
                    yield self._answer.piece(reply)
                if reply.finished:
                    yield self._answer.last(reply)
                    return
                reply = await anext(self._replies)
        except StopAsyncIteration:
            return  # The client has gone.
        except ApiError as error:
            yield event(error.body())


async def _send_body(send: Send, data: bytes, *, more: bool) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": more})


async def _until_disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _read_body(request: Request) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MOST_BODY_BYTES:
            raise ApiError(
                f"the body has more than {MOST_BODY_BYTES} bytes, the limit of this server",
                status=413,
                code="request_too_large",
            )
    return bytes(body)


async def _answer_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return JSONResponse(error.body(), error.status)


async def _answer_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text = f"{request.method} {request.url.path}: {error.detail}"
    answer = ApiError(text, status=error.status_code)
    return JSONResponse(answer.body(), error.status_code, error.headers)


async def _answer_fault(request: Request, error: Exception) -> Response:
    """Answer what should not have happened; Starlette raises it again, and uvicorn logs it."""
    text = "the server made a mistake, which its log shows"
    answer = ApiError(text, status=500, kind="server_error", code="internal_error")
    return JSONResponse(answer.body(), answer.status)


class _HttpServer(uvicorn.Server):
    """A server whose signals are the process's affair."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def main(
    wiring: Wiring, ping_timeout: float, listener: socket.socket, pipe: Connection
) -> None:
    """Be the API server's process.

    Args:
        listener: bound to the address, not listening yet.
        pipe: to the launcher.
    """
    api = ApiServer(wiring, ping_timeout)
    server = _HttpServer(
        uvicorn.Config(
            api.app,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=_CLOSING_S,
        )
    )
    loop: asyncio.AbstractEventLoop | None = None

    def end(text: str) -> None:
        """Answer everybody with an error, and take no more."""
        if api.engine is not None:
            api.engine.fail(text)
        server.should_exit = True

    def end_from_outside(reason: str) -> None:
        with suppress(RuntimeError):  # The loop has ended.
            if loop is not None:
                loop.call_soon_threadsafe(end, reason)

    def work(ready: Callable[[], None]) -> None:
        async def serve() -> None:
            nonlocal loop
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGTERM, end, "the server is shutting down")
            serving = asyncio.create_task(server.serve([listener]))
            while not (server.started or serving.done()):
                await asyncio.sleep(0.01)
            if server.started:
                ready()
            await serving

        asyncio.run(serve())

    child.run(pipe, work, end_from_outside)

"""The launcher: starts the processes of a server, watches over them, and ends them.

    API server --TokenizeMsg--> tokenizer --UserMsg--> ranks 0..n --DetokenizeMsg--> detokenizer
        ^                                                                                |
        '-------------------------------- UserReply -------------------------------------'

The first process that ends takes all others with it: the API server answers what is under way with
an error, and the launcher says which process it was, and why. When the launcher itself is killed,
the closing of its pipes ends the children, and msgen's workers end themselves.
"""

from __future__ import annotations

import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import SimpleQueue
from types import FrameType
from typing import Any

from msgen.runtime import MsgenError, WorkerError
from msgen.runtime.launch import WorkerPool

from . import api_server, checkpoint, detokenizer, tokenizer
from .llama import LlamaConfig
from .processes import ChildProcess, Children, ServerFailed
from .progress import StartDisplay
from .wiring import Wiring


@dataclass(frozen=True)
class ServeOptions:
    """What can be chosen; the command line says what each means."""

    model: str | None
    host: str
    port: int
    ranks: int
    device: str
    context: int | None
    cache_tokens: int
    max_running: int
    max_step_tokens: int
    threads: int | None
    ping_timeout: float
    step_timeout: float


class Interrupted(BaseException):
    """Raised by SIGINT and SIGTERM wherever the launcher is."""


def serve(options: ServeOptions, say: Callable[[str], None]) -> None:
    """Run a server until SIGINT or SIGTERM.

    Args:
        say: is told what people want to know once the server is there.

    Raises:
        ServerFailed: a process ended, or could not start.
        ModelMissing: there is no model.
        OSError: the address is taken.
        Interrupted: a second signal came before all had ended in order.
    """
    with _interrupting():
        try:
            _serve(options, say)
        except Interrupted:
            say("stopped")


def _serve(options: ServeOptions, say: Callable[[str], None]) -> None:
    failures: SimpleQueue[str] = SimpleQueue()
    with StartDisplay() as display, _bound(options.host, options.port) as listener:
        wiring = _wiring(options, display)
        children = Children(
            on_ready=lambda name: display.end(name, "ready"), on_failure=failures.put
        )
        pool = _pool(options, wiring)
        try:
            server = _start(options, wiring, listener, children, pool, display)
            listener_name = _url(options.host, listener.getsockname()[1])
            listener.close()  # The API server has its own.
            display.__exit__(None, None, None)
            say(f"serving {wiring.name} at {listener_name}")
            _watch_pool(pool, failures)
            failure = failures.get()
            server.tell(f"the engine has failed: {failure}")
            raise ServerFailed(failure)
        except BaseException:
            _stop(children, pool)
            raise


def _start(
    options: ServeOptions,
    wiring: Wiring,
    listener: socket.socket,
    children: Children,
    pool: WorkerPool,
    display: StartDisplay,
) -> ChildProcess:
    """Start all processes, and return the API server once all are ready."""
    for name, module in (("tokenizer", tokenizer), ("detokenizer", detokenizer)):
        display.begin(name, "starting")
        children.start(name, module.main, wiring)
    display.begin("API server", "starting")
    server = children.start(
        "API server", api_server.main, wiring, options.ping_timeout, listener
    )
    children.watch()
    display.begin("ranks", f"{options.ranks} starting on {options.device}")
    try:
        pool.start()
    except MsgenError as error:
        raise ServerFailed(str(error)) from error
    display.end("ranks", f"ready (processes {', '.join(map(str, pool.pids))})")
    children.wait_ready()
    return server


def _wiring(options: ServeOptions, display: StartDisplay) -> Wiring:
    display.begin("model", "looking for it")
    folder = checkpoint.find(options.model, lambda text: display.begin("model", text))
    config = LlamaConfig.load(folder)
    most = min(config.max_position_embeddings, options.cache_tokens)
    context = options.context or most
    if context > most:
        raise ServerFailed(
            f"--context: expected at most {most}, got {context}: the model has positions for "
            f"{config.max_position_embeddings} tokens, and the cache room for "
            f"{options.cache_tokens}"
        )
    display.end("model", f"found in {folder}")
    return Wiring(
        secrets.token_hex(8), str(folder), checkpoint.name_of(folder), context
    )


def _pool(options: ServeOptions, wiring: Wiring) -> WorkerPool:
    handler_options: dict[str, Any] = {
        "model": wiring.model,
        "context": wiring.context,
        "cache_tokens": options.cache_tokens,
        "max_running": options.max_running,
        "max_step_tokens": options.max_step_tokens,
        "threads": options.threads,
    }
    return WorkerPool(
        "serve.engine:Engine",
        requests=wiring.backend,
        replies=wiring.detokenizer,
        request_codec="msgen.generated.backend:CODEC",
        reply_codec="msgen.generated.tokenizer:CODEC",
        options=handler_options,
        ranks=options.ranks,
        device=options.device,
        step_timeout=options.step_timeout,
    )


def _watch_pool(pool: WorkerPool, failures: SimpleQueue[str]) -> None:
    def watch() -> None:
        try:
            pool.wait()
        except WorkerError as error:
            failures.put(str(error))
        else:
            failures.put("the ranks have ended")

    threading.Thread(target=watch, daemon=True).start()


def _stop(children: Children, pool: WorkerPool) -> None:
    """End everything in order; what is under way is not waited for."""
    try:
        children.stop()
        pool.stop(drain=False)
    except BaseException:
        children.kill()
        pool.stop(drain=False, timeout=0)
        raise


@contextmanager
def _interrupting() -> Iterator[None]:
    """Have SIGINT and SIGTERM raise Interrupted."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Interrupted

    before = {
        number: signal.signal(number, interrupt)
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _bound(host: str, port: int) -> socket.socket:
    """Return a socket that holds the address; it does not listen before the server is there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        with suppress(AttributeError):
            error.filename = f"{host}:{port}"
        raise
    return listener


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

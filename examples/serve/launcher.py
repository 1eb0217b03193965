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
import socket
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from msgen.runtime import MsgenError, WorkerError
from msgen.runtime.launch import WorkerPool

from .api import server as api_server
from .model import checkpoint
from .model.llama import LlamaConfig
from .options import ServeOptions, ServerFailed
from .processes import START_METHOD, ChildProcess, Children
from .progress import StartDisplay
from .text import detokenizer, tokenizer
from .wiring import Wiring


def serve(options: ServeOptions, say: Callable[[str], None]) -> None:
    """Run a server until a signal raises Interrupted; a second one kills what has not ended yet.

    Args:
        say: is told what people want to know once the server is there.

    Raises:
        ServerFailed: a process ended, or could not start, or the address is taken.
        ModelMissing: there is no model.
        Interrupted: a signal came; all has ended.
    """
    with StartDisplay() as display, _bound(options) as listener:
        wiring = _wiring(options, display)
        server = Server(options, wiring)
        url = _url(options.host, listener.getsockname()[1])
        try:
            server.start(listener, display)
        except BaseException:
            server.stop("the server did not start")
            raise
    say(f"serving {wiring.name} at {url}")
    server.run()


class Server:
    """The processes of a server.

    Args:
        options: what was chosen.
        wiring: what the processes agree on.
    """

    def __init__(self, options: ServeOptions, wiring: Wiring) -> None:
        self._options = options
        self._wiring = wiring
        self._failures: SimpleQueue[str] = SimpleQueue()
        self._pool = _pool(options, wiring)
        self._api: ChildProcess | None = None
        self._children: Children | None = None

    def start(self, listener: socket.socket, display: StartDisplay) -> None:
        """Start all processes, and return when all are ready.

        Args:
            listener: bound to the server's address.
            display: is shown how far it is.

        Raises:
            ServerFailed: one could not start.
        """
        children = self._children = Children(
            lambda name: display.end(name, "ready"), self._failures.put
        )
        wiring = self._wiring
        for name, module in (("tokenizer", tokenizer), ("detokenizer", detokenizer)):
            display.begin(name, "starting")
            children.start(name, module.main, wiring)
        display.begin("API server", "starting")
        self._api = children.start(
            "API server",
            api_server.main,
            wiring,
            self._options.ping_timeout,
            listener,
        )
        children.watch()
        display.begin("ranks", f"{self._options.ranks} on {self._options.device}")
        try:
            self._pool.start()
        except MsgenError as error:
            raise ServerFailed(str(error)) from error
        pids = ", ".join(map(str, self._pool.pids))
        display.end("ranks", "ready", f"(processes {pids})")
        children.wait_ready()

    def run(self) -> None:
        """Wait until a process ends, and end the others.

        Raises:
            ServerFailed: one has ended.
            Interrupted: a signal came.
        """
        threading.Thread(target=self._watch_pool, daemon=True).start()
        reason = "the server is shutting down"
        try:
            failure = self._failures.get()
            reason = f"the engine has failed: {failure}"
            raise ServerFailed(failure)
        finally:
            self.stop(reason)

    def stop(self, reason: str) -> None:
        """End everything; what is under way gets the reason for an answer."""
        try:
            if self._api is not None:
                self._api.end(reason)
            self._pool.stop(drain=False)
            if self._children is not None:
                self._children.stop(reason)
        except BaseException:
            if self._children is not None:
                self._children.kill()
            self._pool.stop(drain=False, timeout=0)
            raise
        finally:
            self._wiring.remove_files()

    def _watch_pool(self) -> None:
        try:
            self._pool.wait()
        except WorkerError as error:
            self._failures.put(str(error))
        else:
            self._failures.put("the ranks have ended")


def _wiring(options: ServeOptions, display: StartDisplay) -> Wiring:
    display.begin("model", "looking for it")
    folder = checkpoint.find(options.model, lambda text: display.begin("model", text))
    try:
        config = LlamaConfig.load(folder)
        config.check_ranks(options.ranks)
    except ValueError as error:
        raise ServerFailed(str(error)) from None
    most = min(config.max_position_embeddings, options.cache_tokens)
    context = options.context or most
    if context > most:
        raise ServerFailed(
            f"--context: expected at most {most}, got {context}: the model has positions for "
            f"{config.max_position_embeddings} tokens, and the cache room for "
            f"{options.cache_tokens}"
        )
    display.end("model", "found", f"in {folder}")
    return Wiring(
        secrets.token_hex(8), str(folder), checkpoint.name_of(folder), context
    )


def _pool(options: ServeOptions, wiring: Wiring) -> WorkerPool:
    handler_options: dict[str, Any] = {
        "model": wiring.model,
        "context": wiring.context,
        "cache_tokens": options.cache_tokens,
        "max_running": options.max_running,
        "max_waiting": options.max_waiting,
        "max_step_tokens": options.max_step_tokens,
        "threads": options.threads,
    }
    return WorkerPool(
        "serve.engine.handler:Engine",
        requests=wiring.backend,
        replies=wiring.detokenizer,
        request_codec="msgen.generated.backend:CODEC",
        reply_codec="msgen.generated.tokenizer:CODEC",
        options=handler_options,
        ranks=options.ranks,
        device=options.device,
        step_timeout=options.step_timeout,
        start_method=START_METHOD,
    )


def _bound(options: ServeOptions) -> socket.socket:
    """Return a socket that holds the address; the API server will listen on it."""
    host, port = options.host, options.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise ServerFailed(
            f"--host {host} --port {port}: {error.strerror}; choose another one"
        ) from None
    return listener


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

"""The command line: `python -m serve`, with this folder's parent on the path."""

from __future__ import annotations

import sys

import click

from .model.checkpoint import ModelMissing
from .options import ServeOptions, ServerFailed
from .processes import Interrupted, interrupting, prepare


@click.command(context_settings={"show_default": True})
@click.option("--model", help="Folder of a model; SmolLM2-135M-Instruct without it.")
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    help="Port to listen on; 0 for any free one.",
)
@click.option(
    "--ranks",
    type=click.IntRange(1),
    default=1,
    help="Processes that the model is split over.",
)
@click.option(
    "--device", type=click.Choice(["cpu", "cuda"]), default="cpu", help="Where it runs."
)
@click.option(
    "--context",
    type=click.IntRange(2),
    help="Tokens of prompt and answer together; without it, all that the model can.",
)
@click.option(
    "--cache-tokens",
    type=click.IntRange(2),
    default=16384,
    help="Tokens of all running requests that the KV cache holds.",
)
@click.option(
    "--max-running",
    type=click.IntRange(1),
    default=16,
    help="Requests that are answered at the same time.",
)
@click.option(
    "--max-waiting",
    type=click.IntRange(0),
    default=1000,
    help="Requests that wait for that; beyond them new ones are refused.",
)
@click.option(
    "--max-step-tokens",
    type=click.IntRange(1),
    default=512,
    help="Tokens of prompts that one forward pass takes.",
)
@click.option(
    "--threads", type=click.IntRange(1), help="Threads of each rank, on the CPU."
)
@click.option(
    "--ping-timeout",
    type=click.FloatRange(0, min_open=True),
    default=10.0,
    help="Seconds that /health waits for the engine.",
)
@click.option(
    "--step-timeout",
    type=click.FloatRange(0, min_open=True),
    default=120.0,
    help="Seconds after which a step counts as hung.",
)
def main(**options: object) -> None:
    """Serve a model over HTTP, with OpenAI's API for chat completions."""
    try:
        with interrupting():
            prepare()
            from .launcher import serve  # imports torch, which would make --help slow

            serve(ServeOptions(**options), _say)  # type: ignore[arg-type]
    except Interrupted:
        _say("stopped")
    except (ServerFailed, ModelMissing) as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        raise SystemExit(1) from None


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()

"""The server of examples/serve, end to end: real processes, the real model, the openai client."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest
from processes import GENEROUS, until
from serve.api.server import MOST_BODY_BYTES
from serve_server import CONTEXT, MODEL, RunningServer, Servers, starting

PARIS = [{"role": "user", "content": "What is the capital of France?"}]
STORY = [{"role": "user", "content": "Tell me a long story about the sea."}]
QUESTIONS = [
    "What is the capital of France?",
    "What is the capital of Italy?",
    "Count from one to ten.",
    "Name three colours.",
    "What is the opposite of hot?",
    "How many legs does a dog have?",
    "Write a short sentence about rain.",
    "What do bees make?",
]


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    servers = Servers()
    yield servers
    servers.end_all()


@pytest.fixture
def server(servers: Servers) -> RunningServer:
    """A server with one rank that nobody asks anything."""
    running = servers.with_ranks(1)
    until(lambda: idle(running))
    return running


def idle(server: RunningServer) -> bool:
    stats = server.stats()
    return stats["running"] == stats["waiting"] == 0


@pytest.fixture
def client(server: RunningServer) -> Iterator[Any]:
    with client_of(server) as client:
        yield client


def client_of(server: RunningServer) -> Any:
    return openai.OpenAI(
        base_url=f"{server.url}/v1", api_key="none", timeout=GENEROUS, max_retries=0
    )


def ask(client: Any, messages: Any = PARIS, **options: Any) -> Any:
    """Ask for the most likely answer, of few tokens."""
    wanted = {"temperature": 0, "max_tokens": 16, **options}
    return client.chat.completions.create(model=MODEL, messages=messages, **wanted)


def text_of(completion: Any) -> str:
    text: str = completion.choices[0].message.content
    return text


def test_an_answer_comes_whole(client: Any) -> None:
    completion = ask(client)
    assert text_of(completion) == "The capital of France is Paris."
    assert completion.choices[0].finish_reason == "stop"
    assert completion.model == MODEL
    usage = completion.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (
        37,
        8,
        45,
    )


def test_an_answer_comes_in_pieces(client: Any) -> None:
    chunks = list(ask(client, stream=True, stream_options={"include_usage": True}))
    *pieces, last, counts = chunks
    assert pieces[0].choices[0].delta.role == "assistant"
    texts = [chunk.choices[0].delta.content for chunk in pieces]
    assert "".join(texts) == "The capital of France is Paris."
    assert len([text for text in texts if text]) > 1
    assert [chunk.choices[0].finish_reason for chunk in pieces] == [None] * len(pieces)
    assert last.choices[0].finish_reason == "stop"
    assert (counts.choices, counts.usage.total_tokens) == ([], 45)
    assert len({chunk.id for chunk in chunks}) == 1


def test_a_stream_ends_as_the_protocol_says(server: RunningServer) -> None:
    body = {"model": MODEL, "messages": PARIS, "stream": True, "max_tokens": 2}
    connection = connect(server)
    connection.request("POST", "/v1/chat/completions", json.dumps(body))
    response = connection.getresponse()
    assert response.headers["content-type"].startswith("text/event-stream")
    events = response.read().decode().split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    assert all(event.startswith("data: {") for event in events[:-2])
    assert not any("usage" in event for event in events)
    connection.close()


def test_the_limit_of_tokens_is_kept(client: Any) -> None:
    completion = ask(client, max_tokens=3)
    assert completion.choices[0].finish_reason == "length"
    assert completion.usage.completion_tokens == 3
    # The answer would have ended after 8.
    longer = ask(client, max_tokens=12, extra_body={"ignore_eos": True})
    assert longer.choices[0].finish_reason == "length"
    assert longer.usage.completion_tokens == 12


def test_a_stop_text_ends_the_answer(server: RunningServer, client: Any) -> None:
    before = server.stats()
    completion = ask(
        client, stop=[" is", "never"], max_tokens=400, extra_body={"ignore_eos": True}
    )
    assert text_of(completion) == "The capital of France"
    assert completion.choices[0].finish_reason == "stop"
    assert completion.usage.prompt_tokens == 37
    assert 4 < completion.usage.completion_tokens < 400
    pieces = list(ask(client, stop="of Fr", stream=True))
    texts = [chunk.choices[0].delta.content or "" for chunk in pieces]
    assert "".join(texts) == "The capital "
    assert pieces[-1].choices[0].finish_reason == "stop"
    until(lambda: idle(server))
    assert server.stats()["aborted"] >= before["aborted"] + 1


def test_each_request_has_its_own_way_of_choosing(client: Any) -> None:
    options = [
        {"temperature": 0.0},
        {"temperature": 2.0, "extra_body": {"top_k": 1}},
        {"temperature": 1.0, "top_p": 1e-9},
        {"temperature": 2.0, "max_tokens": 5, "extra_body": {"ignore_eos": True}},
    ]
    with ThreadPoolExecutor(len(options)) as threads:
        answers = list(threads.map(lambda each: ask(client, **each), options))
    first = "The capital of France is Paris."
    assert [text_of(answer) for answer in answers[:3]] == [first] * 3
    assert answers[3].usage.completion_tokens == 5


@pytest.mark.long
def test_eight_at_once_are_answered_as_if_they_were_alone(client: Any) -> None:
    def answer(question: str) -> str:
        message = {"role": "user", "content": question}
        return text_of(ask(client, [message], max_tokens=6))

    alone = [answer(question) for question in QUESTIONS]
    with ThreadPoolExecutor(len(QUESTIONS)) as threads:
        together = list(threads.map(answer, QUESTIONS))
    assert together == alone
    assert len(set(alone)) == len(alone)


def test_eight_run_together_and_are_dropped_when_their_clients_go(
    server: RunningServer, client: Any
) -> None:
    before = server.stats()
    streams = [
        ask(client, STORY, stream=True, max_tokens=400, extra_body={"ignore_eos": True})
        for _ in QUESTIONS
    ]
    for stream in streams:
        assert len([next(stream) for _ in range(3)]) == 3
    during = server.stats()
    assert during["running"] == during["largest_batch"] == 8
    for stream in streams:
        stream.close()
    until(lambda: idle(server))
    after = server.stats()
    assert after["aborted"] == before["aborted"] + 8
    assert after["finished"] == before["finished"]
    assert after["free_tokens"] == after["total_tokens"]


def test_a_request_is_dropped_whose_client_goes_before_the_answer(
    server: RunningServer,
) -> None:
    before = server.stats()
    body = {"model": MODEL, "messages": STORY, "ignore_eos": True, "max_tokens": 400}
    connection = connect(server)
    connection.request("POST", "/v1/chat/completions", json.dumps(body))
    until(lambda: server.stats()["running"] == 1)
    connection.close()
    until(lambda: idle(server))
    after = server.stats()
    assert after["aborted"] == before["aborted"] + 1
    assert after["finished"] == before["finished"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_that_is_too_long_is_refused(client: Any, stream: bool) -> None:
    messages = [{"role": "user", "content": "word " * CONTEXT}]
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, messages, stream=stream)
    error: Any = caught.value.body
    assert error["code"] == "context_length_exceeded"
    assert error["param"] == "messages"
    assert error["message"] == (
        "the prompt has 543 tokens, and the model's context of 512 tokens must hold prompt and "
        "answer; shorten the messages to at most 511 tokens"
    )


def test_a_prompt_that_just_fits_gets_the_tokens_that_are_left(client: Any) -> None:
    messages = [{"role": "user", "content": "word " * (CONTEXT - 34)}]
    completion = ask(
        client, messages, max_tokens=CONTEXT, extra_body={"ignore_eos": True}
    )
    usage = completion.usage
    assert usage.total_tokens == CONTEXT
    assert usage.completion_tokens < 4
    assert completion.choices[0].finish_reason == "length"


def test_mistakes_are_told_in_the_words_of_the_api(client: Any) -> None:
    with pytest.raises(openai.NotFoundError) as unknown:
        client.chat.completions.create(model="gpt-9", messages=PARIS)
    error: Any = unknown.value.body
    assert error == {
        "message": f"model: there is no 'gpt-9' here; this server has '{MODEL}'",
        "type": "invalid_request_error",
        "param": "model",
        "code": "model_not_found",
    }
    with pytest.raises(openai.BadRequestError) as wrong:
        ask(client, temperature=3)
    error = wrong.value.body
    assert error["message"] == "temperature: expected a number from 0 to 2, got 3"


def test_text_that_cannot_be_sent_on_is_told_to_the_client(
    server: RunningServer,
) -> None:
    messages = [{"role": "user", "content": "\ud800"}]  # half of a character
    connection = connect(server)
    body = json.dumps({"model": MODEL, "messages": messages})
    connection.request("POST", "/v1/chat/completions", body)
    response = connection.getresponse()
    error = json.load(response)["error"]
    assert response.status == 400
    assert error["message"].startswith(
        "the request cannot be sent on: TokenizeMsg.text"
    )
    connection.close()


def test_a_body_that_is_too_large_is_not_read(server: RunningServer) -> None:
    connection = connect(server)
    connection.request("POST", "/v1/chat/completions", b" " * (MOST_BODY_BYTES + 1))
    response = connection.getresponse()
    assert (response.status, json.load(response)["error"]["code"]) == (
        413,
        "request_too_large",
    )
    connection.close()


def test_what_is_not_there_is_told_in_the_words_of_the_api(
    server: RunningServer,
) -> None:
    status, body = server.get("/v1/none")
    assert (status, body["error"]["message"]) == (404, "GET /v1/none: Not Found")
    status, body = server.get("/v1/chat/completions")
    assert (status, body["error"]["type"]) == (405, "invalid_request_error")
    status, body = server.get("/v1/models/gpt-9")
    assert (status, body["error"]["code"]) == (404, "model_not_found")


def test_the_model_is_listed(client: Any) -> None:
    (listed,) = client.models.list().data
    assert (listed.id, listed.object) == (MODEL, "model")
    assert client.models.retrieve(MODEL) == listed


def test_health_is_asked_of_the_engine_and_not_of_the_process(
    server: RunningServer,
) -> None:
    until(server.healthy)
    (rank,) = server.ranks
    os.kill(rank, signal.SIGSTOP)
    try:
        status, body = server.get("/health")
    finally:
        os.kill(rank, signal.SIGCONT)
    assert status == 503
    assert body == {
        "status": "unavailable",
        "reason": "the engine did not answer a ping within 3 s",
    }
    until(server.healthy)


@pytest.mark.long
def test_two_ranks_give_the_same_text_as_one(servers: Servers) -> None:
    def answers(ranks: int) -> list[str]:
        server = servers.with_ranks(ranks)
        until(lambda: server.stats()["ranks"] == ranks)
        with client_of(server) as client, ThreadPoolExecutor(4) as threads:
            asked = [[{"role": "user", "content": each}] for each in QUESTIONS[:4]]
            return list(threads.map(lambda each: text_of(ask(client, each)), asked))

    one = answers(1)
    assert answers(2) == one


def test_ctrl_c_ends_all_and_leaves_nothing(server: RunningServer, client: Any) -> None:
    stream = ask(client, STORY, stream=True, max_tokens=400)
    next(stream)
    server.launcher.send_signal(signal.SIGINT)
    with pytest.raises(openai.APIError, match="the server is shutting down"):
        list(stream)
    assert server.wait_end() == 0
    assert server.launcher.stdout is not None
    assert server.launcher.stdout.read() == "stopped\n"
    server.assert_nothing_left()


def test_a_killed_launcher_takes_all_with_it(server: RunningServer) -> None:
    assert len(server.descendants) >= 4
    server.launcher.kill()
    server.wait_end()
    server.assert_nothing_left()


def test_ctrl_c_while_it_starts_leaves_nothing() -> None:
    with starting() as server:
        server.wait_line("API server: starting")
        server.launcher.send_signal(signal.SIGINT)
        assert server.wait_end() == 0
        server.assert_nothing_left()


def test_an_address_that_is_taken_is_told_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with starting("--port", str(port)) as server:
            assert server.wait_end() == 1
            assert "".join(server.errors) == (
                f"error: --host 127.0.0.1 --port {port}: Address already in use; choose another "
                "one\n"
            )
            server.assert_nothing_left()


def test_a_killed_rank_ends_all_with_a_clear_message(servers: Servers) -> None:
    server = servers.with_ranks(2)
    until(server.healthy)
    with client_of(server) as client:
        stream = ask(client, STORY, stream=True, max_tokens=400)
        next(stream)
        os.kill(server.ranks[1], signal.SIGKILL)
        with pytest.raises(openai.APIError, match="the engine has failed: rank 1,"):
            list(stream)
    assert server.wait_end() == 1
    assert not server.healthy()
    (line,) = [each for each in server.errors if each.startswith("error: ")]
    assert line.startswith("error: rank 1, ")
    assert "was killed by SIGKILL" in line
    server.assert_nothing_left()


def connect(server: RunningServer) -> http.client.HTTPConnection:
    where = urlsplit(server.url)
    assert where.hostname is not None
    return http.client.HTTPConnection(where.hostname, where.port, timeout=GENEROUS)


def test_the_command_line_says_what_it_takes() -> None:
    with starting("--help") as server:
        assert server.wait_end() == 0
        assert server.launcher.stdout is not None
        assert "--ranks INTEGER" in server.launcher.stdout.read()

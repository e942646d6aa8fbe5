"""A scripted server on loopback that speaks the wire forms of language models, streaming as they do."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Say:
    """An answer in text."""

    text: str
    stop: str = "stop"
    tokens: tuple[int, int] = (100, 50)
    cut: bool = False
    """End the connection in the middle."""
    stall_s: float = 0
    """Wait so long in the middle."""


@dataclass(frozen=True)
class Call:
    """A call of the first tool that runs shell commands, in the form of OpenAI's responses."""

    command: str


@dataclass(frozen=True)
class Refuse:
    """An HTTP error."""

    status: int
    body: dict[str, Any] = field(default_factory=lambda: {"error": {"message": "no", "type": "x"}})


Reply = Say | Call | Refuse | bytes


@dataclass
class Server:
    """Gives its replies in order, and keeps what it was sent."""

    url: str
    replies: list[Reply]
    requests: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, server: Server, *given: Any) -> None:
        self.scripted = server
        super().__init__(*given)

    def log_message(self, *_: Any) -> None:
        return

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.scripted.requests.append((self.path, dict(self.headers.items()), body))
        reply = self.scripted.replies.pop(0) if self.scripted.replies else Refuse(500)
        if isinstance(reply, Refuse):
            self._send(reply.status, json.dumps(reply.body).encode())
        elif isinstance(reply, bytes):
            self._send(200, reply)
        else:
            with suppress(BrokenPipeError, ConnectionResetError):
                self._stream(reply, body)

    def _send(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _stream(self, said: Say | Call, body: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        if isinstance(said, Call):
            events = called(said, body)
        else:
            events = next(make for end, make in FORMS.items() if self.path.endswith(end))(said, body["model"])
        for place, event in enumerate(events):
            if place == len(events) // 2:
                if isinstance(said, Say) and said.cut:
                    return
                time.sleep(said.stall_s if isinstance(said, Say) else 0)
            self.wfile.write(event.encode())
            self.wfile.flush()


@contextmanager
def serving(*replies: Reply) -> Iterator[Server]:
    """Serve until the block ends."""
    server = Server("", list(replies))
    http = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, server))
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    server.url = f"http://127.0.0.1:{http.server_address[1]}"
    try:
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


def pieces(text: str) -> list[str]:
    size = max(1, len(text) // 8)
    return [text[at : at + size] for at in range(0, len(text), size)]


def chat(said: Say, model: str) -> list[str]:
    """Events of OpenAI's chat completions."""

    def chunk(choices: list[dict[str, Any]], usage: dict[str, int] | None = None) -> str:
        made = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": choices}
        return f"data: {json.dumps(made | {'usage': usage})}\n\n"

    events = [
        chunk([{"index": 0, "delta": {"role": "assistant", "content": one}, "finish_reason": None}])
        for one in pieces(said.text)
    ]
    events.append(chunk([{"index": 0, "delta": {}, "finish_reason": said.stop}]))
    prompt, answer = said.tokens
    if prompt:
        usage = {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
        events.append(chunk([], usage))
    return [*events, "data: [DONE]\n\n"]


def called(said: Call, body: dict[str, Any]) -> list[str]:
    """Events of OpenAI's responses that call the first tool for shell commands that the request offers."""
    named = {one["name"]: one for one in body["tools"] if one.get("type") == "function"}
    name = next(one for one in ("exec_command", "shell_command", "shell") if one in named)
    wanted = named[name]["parameters"]["properties"]
    given: dict[str, Any] = {"cmd": said.command} if "cmd" in wanted else {"command": ["sh", "-c", said.command]}
    if "command" in wanted and wanted["command"].get("type") == "string":
        given = {"command": said.command}
    given |= {one: 60_000 for one in ("yield_time_ms", "timeout_ms") if one in wanted}
    item = {
        "id": "f1",
        "type": "function_call",
        "call_id": f"call{len(body['input'])}",
        "name": name,
        "arguments": json.dumps(given),
        "status": "completed",
    }
    return sequence(
        [
            {"type": "response.output_item.added", "output_index": 0, "item": {**item, "arguments": ""}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
        ],
        body["model"],
        [item],
        (100, 50),
    )


def responses(said: Say, model: str) -> list[str]:
    """Events of OpenAI's responses."""
    item = {"id": "m1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    part = {"type": "output_text", "text": said.text, "annotations": []}
    done = {**item, "status": "completed", "content": [part]}
    at = {"item_id": "m1", "output_index": 0, "content_index": 0}
    events: list[dict[str, Any]] = [
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
        *({"type": "response.output_text.delta", **at, "delta": one, "logprobs": []} for one in pieces(said.text)),
        {"type": "response.output_text.done", **at, "text": said.text, "logprobs": []},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
    ]
    return sequence(events, model, [done], said.tokens)


def sequence(
    events: list[dict[str, Any]], model: str, output: list[dict[str, Any]], tokens: tuple[int, int]
) -> list[str]:
    """Put the events of a response between its beginning and its end."""
    whole = {
        "id": "r1",
        "object": "response",
        "created_at": 1,
        "model": model,
        "status": "in_progress",
        "output": [],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
    }
    usage = {
        "input_tokens": tokens[0],
        "output_tokens": tokens[1],
        "total_tokens": sum(tokens),
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    all_events: list[dict[str, Any]] = [
        {"type": "response.created", "response": whole},
        *events,
        {
            "type": "response.completed",
            "response": {**whole, "status": "completed", "output": output, "usage": usage},
        },
    ]
    return [
        f"event: {one['type']}\ndata: {json.dumps({**one, 'sequence_number': place})}\n\n"
        for place, one in enumerate(all_events)
    ]


def anthropic(said: Say, model: str) -> list[str]:
    """Events of Anthropic's messages."""
    stop = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}[said.stop]
    message = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": said.tokens[0], "output_tokens": 1},
    }
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": one}}
            for one in pieces(said.text)
        ),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop, "stop_sequence": None},
            "usage": {"input_tokens": said.tokens[0], "output_tokens": said.tokens[1]},
        },
        {"type": "message_stop"},
    ]
    return [f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events]


FORMS: dict[str, Callable[[Say, str], list[str]]] = {
    "/chat/completions": chat,
    "/responses": responses,
    "/messages": anthropic,
}
"""End of a request's path -> the events of its answer."""

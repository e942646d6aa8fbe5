"""Starts the real server as a process on a free port, and asks it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Served:
    """A server, its workspace, and the tokens that were granted there."""

    address: str
    home: Path
    tokens: dict[str, str]
    process: "subprocess.Popen[str]"

    def client(self, holder: str | None = None, **headers: str) -> httpx.Client:
        """A client with the token of `holder`; without a token for None."""
        named = {} if holder is None else {"Authorization": f"Bearer {self.tokens[holder]}"}
        return httpx.Client(base_url=self.address, headers=named | headers, timeout=60, verify=False, trust_env=False)

    def get(self, path: str, holder: str | None = None, **more: Any) -> httpx.Response:
        """The answer of the API."""
        with self.client(holder) as client:
            return client.get(f"/api/v1{path}", **more)

    def post(self, path: str, holder: str | None, document: object, **headers: str) -> httpx.Response:
        """The answer of the API to a change."""
        with self.client(holder, **headers) as client:
            return client.post(f"/api/v1{path}", json=document)


@contextmanager
def served(home: Path, tokens: dict[str, str], *more: str) -> Iterator[Served]:
    """A server of a workspace until the block ends."""
    command = [sys.executable, "-m", "forge", "serve", "--home", str(home), "--port", "0", "--json", *more]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=os.environ | {"NO_COLOR": "1"}
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "the server ended before it had an address"
        yield Served(json.loads(line)["address"], home, tokens, process)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(120)
        process.communicate()


def problem(answer: httpx.Response) -> dict[str, Any]:
    """The problem document of a refusal."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    found: dict[str, Any] = answer.json()
    assert found["status"] == answer.status_code
    assert found["code"].isupper()
    assert found["detail"]
    return found

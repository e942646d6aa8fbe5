#!/usr/bin/env python3
"""The `forge` command that a coding agent has: `forge submit` and `forge wait`, and no other verb.

It runs beside the agent's own processes, so the session believes nothing that it says.
"""

import json
import os
import socket
import sys

FILES = ("kernel.py", "reference.py", "test_correctness.py", "bench.py", "metadata.json")
"""Names of the five files that an agent hands in."""
MOST_BYTES = 512 * 1024
"""Largest file of a candidate, in bytes: `FILE_LIMIT_BYTES` of the domain, which this program can't import."""
USAGE = "usage: forge submit [FOLDER] [--hypothesis TEXT] | forge wait"


def main(words: list[str]) -> int:
    """Send one request to the session, print its answer, and return the exit status."""
    if not words or words[0] not in ("submit", "wait"):
        return said(2, f"unknown command {' '.join(words)[:100]!r}: expected submit or wait\n{USAGE}")
    if words[0] == "wait":
        return waited(ask({"verb": "wait"}))
    hypothesis = ""
    if "--hypothesis" in words:
        place = words.index("--hypothesis")
        hypothesis = " ".join(words[place + 1 : place + 2])
        del words[place : place + 2]
    folder = words[1] if len(words) > 1 else "candidate"
    files = {}
    for name in FILES:
        path = os.path.join(folder, name)
        if not os.path.isfile(path):
            return said(2, f"{path} isn't there: expected the five files {', '.join(FILES)}")
        with open(path, encoding="utf-8", errors="replace") as opened:
            files[name] = opened.read(MOST_BYTES + 1)
        if len(files[name]) > MOST_BYTES:
            return said(2, f"{path} is too large: expected at most {MOST_BYTES} bytes")
    answer = ask({"verb": "submit", "files": files, "hypothesis": hypothesis})
    return said(0, "submitted; `forge wait` says what was found") if answer.get("ok") else said(2, str(answer))


def ask(request: dict[str, object]) -> dict[str, object]:
    """Send a request over the session's socket, and return its answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(os.environ.get("FORGE_SOCKET", "/run/forge/socket"))
        connection.sendall(json.dumps(request).encode() + b"\n")
        data = b""
        while not data.endswith(b"\n"):
            piece = connection.recv(1 << 16)
            if not piece:
                break
            data += piece
    answer = json.loads(data or b'{"error": "the session has ended"}')
    return answer if isinstance(answer, dict) else {}


def waited(answer: dict[str, object]) -> int:
    """Print a feedback document; the exit status is 0 for an accepted candidate."""
    print(json.dumps(answer, indent=1))  # noqa: T201  # this is a command
    return 0 if answer.get("verdict") == "accepted" else 1


def said(status: int, text: str) -> int:
    """Print a line and return the exit status."""
    print(text, file=sys.stderr if status else sys.stdout)  # this is a command
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

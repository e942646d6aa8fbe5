"""The socket of one coding agent's session. It knows two verbs: submit and wait. Every byte from it is untrusted."""

import json
import queue
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from forge.domain.candidate import FILE_LIMIT_BYTES
from forge.domain.candidate_files import REQUIRED_FILES

MOST_REQUEST_BYTES = 8 * FILE_LIMIT_BYTES
"""Size of a request in bytes, at most: five files of the largest size, escaped."""
READ_S = 20.0
"""Seconds in which a request must arrive in full. Chosen; on one machine it takes milliseconds, and an open
connection holds a place."""
MOST_CONNECTIONS = 16
"""Number of connections at once, at most. Chosen; an agent has one process that waits, and others that hold places
can't exceed this."""
LONGEST_HYPOTHESIS = 2000
"""Number of characters of a hypothesis that are read. It is the limit of a candidate's `hypothesis`."""


@dataclass
class AgentSocket:
    """Takes submissions, and gives the feedback to those who wait for it."""

    path: Path
    submitted: "queue.Queue[str]" = field(default_factory=lambda: queue.Queue(maxsize=1))
    """The submission that the session hasn't taken yet, as JSON text."""
    _told: threading.Condition = field(default_factory=threading.Condition)
    _document: str = ""
    _is_judged: bool = True
    """Whether everything that was submitted was judged."""
    _closed: bool = False
    _listener: socket.socket | None = None
    _slots: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(MOST_CONNECTIONS))

    def open(self) -> None:
        """Begin to listen."""
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self.path))
        self.path.chmod(0o666)  # the folder around it is shown to the agent alone
        self._listener.listen(MOST_CONNECTIONS)
        threading.Thread(target=self._serve, daemon=True).start()

    def tell(self, document: str) -> None:
        """Give a feedback document to those who wait."""
        with self._told:
            self._document, self._is_judged = document, True
            self._told.notify_all()

    def close(self) -> None:
        """Stop listening, and end every wait."""
        with self._told:
            self._closed = True
            self._told.notify_all()
        if self._listener is not None:
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()

    def _serve(self) -> None:
        assert self._listener is not None
        while not self._closed:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            if not self._slots.acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        try:
            with suppress(OSError), connection:
                connection.settimeout(READ_S)
                answer = self._answer(_read(connection))
                connection.sendall(answer.replace("\n", " ").encode() + b"\n")
        finally:
            self._slots.release()

    def _answer(self, untrusted_request: object) -> str:
        if not isinstance(untrusted_request, dict):
            return _error("not a request: expected one line of JSON")
        match untrusted_request.get("verb"):
            case "submit":
                return self._submit(untrusted_request)
            case "wait":
                return self._wait()
            case other:
                return _error(f"unknown verb {str(other)[:50]!r}: expected submit or wait")

    def _submit(self, untrusted_request: dict[str, object]) -> str:
        files, said = untrusted_request.get("files"), untrusted_request.get("hypothesis")
        if not isinstance(files, dict) or not all(
            name in REQUIRED_FILES and isinstance(text, str) for name, text in files.items()
        ):
            return _error(f"bad files: expected text of {', '.join(REQUIRED_FILES)}")
        hypothesis = said[:LONGEST_HYPOTHESIS] if isinstance(said, str) else ""
        with self._told:
            if not self._is_judged:
                return _error("the last submission isn't judged yet: expected `forge wait` first")
            self._is_judged = False
            self.submitted.put(json.dumps({"files": files, "hypothesis": hypothesis}))
        return '{"ok": true}'

    def _wait(self) -> str:
        with self._told:
            self._told.wait_for(lambda: self._is_judged or self._closed)
            return _error("the session has ended") if self._closed else self._document


def _read(connection: socket.socket) -> object:
    data = b""
    while not data.endswith(b"\n"):
        piece = connection.recv(1 << 16)
        if not piece or len(data) > MOST_REQUEST_BYTES:
            return None
        data += piece
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _error(text: str) -> str:
    return json.dumps({"error": text})

"""Keeps what a guest printed: limited in size, and made harmless to read.

Distrusts every byte: people and language models read it, evidence stores it, and nothing parses it. Control
characters, escape sequences and text-direction marks become visible escapes.
"""

import threading
from collections.abc import Iterator


class Log:
    """Keeps the start and the end of a stream within `limit_bytes`, and counts the rest."""

    def __init__(self, limit_bytes: int) -> None:
        self._head_bytes = (limit_bytes + 1) // 2
        self._tail_bytes = limit_bytes // 2
        self._head = b""
        self._tail = b""
        self._lock = threading.Lock()
        self.seen_bytes = 0

    def add(self, untrusted_data: bytes) -> None:
        """Add the next piece of the stream."""
        with self._lock:
            self.seen_bytes += len(untrusted_data)
            room = self._head_bytes - len(self._head)
            self._head += untrusted_data[:room]
            rest = untrusted_data[room:]
            self._tail = (self._tail + rest)[-self._tail_bytes :] if self._tail_bytes else b""

    def text(self) -> str:
        """Return the kept text, escaped; a mark in the middle gives the number of bytes left out.

        Escapes are longer than the characters they replace, so each half is cut once more to its share.
        """
        with self._lock:
            head, tail, seen = self._head, self._tail, self.seen_bytes
        left_out = seen - len(head) - len(tail)
        if left_out == 0 and len(whole := harmless(head + tail).encode()) <= self._head_bytes + self._tail_bytes:
            return whole.decode()
        first = harmless(head).encode()[: self._head_bytes].decode(errors="ignore")
        last = harmless(tail).encode()[-self._tail_bytes :].decode(errors="ignore") if tail else ""
        return f"{first}\n[{left_out} bytes left out]\n{last}"


def harmless(untrusted_data: bytes) -> str:
    """Decode as UTF-8 with replacement, and escape everything unprintable except newline and tab."""
    return "".join(_escaped(untrusted_data.decode(errors="replace")))


def _escaped(text: str) -> Iterator[str]:
    for character in text:
        if character.isprintable() or character in "\n\t":
            yield character
        else:
            yield character.encode("unicode_escape").decode()

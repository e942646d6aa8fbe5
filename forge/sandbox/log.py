"""What a guest printed: capped, and made harmless to read.

Distrusts every byte: it is shown to people and language models, stored in evidence, and never parsed. Control
characters, escape sequences and text-direction marks become visible escapes.
"""

import threading
from collections.abc import Iterator


class Log:
    """Keeps the beginning and the end of a stream within `limit_bytes`, and counts the rest."""

    def __init__(self, limit_bytes: int) -> None:
        self._head_bytes = (limit_bytes + 1) // 2
        self._tail_bytes = limit_bytes // 2
        self._head = b""
        self._tail = b""
        self._lock = threading.Lock()
        self.seen_bytes = 0

    def add(self, untrusted_data: bytes) -> None:
        """Take the next piece of the stream."""
        with self._lock:
            self.seen_bytes += len(untrusted_data)
            room = self._head_bytes - len(self._head)
            self._head += untrusted_data[:room]
            rest = untrusted_data[room:]
            self._tail = (self._tail + rest)[-self._tail_bytes :] if self._tail_bytes else b""

    def text(self) -> str:
        """Return what was kept, escaped; a cut in the middle is marked with the number of bytes left out.

        Escapes are longer than what they stand for, so each half is cut once more to its share.
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
    """Decode as UTF-8 with replacement, and escape everything that isn't printable but newline and tab."""
    return "".join(_escaped(untrusted_data.decode(errors="replace")))


def _escaped(text: str) -> Iterator[str]:
    for character in text:
        if character.isprintable() or character in "\n\t":
            yield character
        else:
            yield character.encode("unicode_escape").decode()

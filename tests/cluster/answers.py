"""Workers that answer as no Forge does. Ray starts them on a node by name, in place of Forge's own."""

import time
from collections.abc import Iterator

from forge.executor.remote.answering import hello
from forge.executor.remote.frames import packed


class Garbage:
    """Greets, and answers with what is no message."""

    def __init__(self, device: str | None) -> None:
        self.device = device

    def hello(self) -> bytes:
        return hello().payload

    def answer(self, call: bytes) -> Iterator[bytes]:
        yield b"\xff" + call[:20]


class Verbose(Garbage):
    """Greets again in place of an answer."""

    def answer(self, call: bytes) -> Iterator[bytes]:
        assert call
        yield packed(hello())


class Silent(Garbage):
    """Never answers."""

    def answer(self, call: bytes) -> Iterator[bytes]:
        time.sleep(60)
        yield call

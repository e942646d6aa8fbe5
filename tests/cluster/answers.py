"""Workers that answer as no Forge does. Ray starts them on a node by name, in place of Forge's own."""

import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from forge.executor.local import LocalExecutor
from forge.executor.ray import NodeWorker
from forge.executor.remote.answering import Answering, hello
from forge.executor.remote.frames import packed
from forge.lab.job import Job, Progress
from forge.lab.verification import Examination
from tests.executor.at_once import AtOnce
from tests.shortened import shorten_series


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


class _AsksNothingOfSources(LocalExecutor):
    """Judges without the rules about sources, so that the wall and the gates are what is tried."""

    def examine(self, job: Job, *, progress: Progress) -> Examination:
        """Judge a candidate."""
        return super().examine(replace(job, forbidding=False), progress=progress)


class OnlyWalls(NodeWorker):
    """Forge's own worker, without the rules about sources."""

    def __init__(self, device: str | None) -> None:
        super().__init__(device)
        self._answering = Answering(_AsksNothingOfSources(Path(tempfile.gettempdir()) / "forge-measuring.lock"))


class OnlyWallsAndShortSeries(OnlyWalls):
    """The same for a candidate that passes every gate, with the short series of the fixture `short_series`."""

    def __init__(self, device: str | None) -> None:
        super().__init__(device)
        shorten_series(pytest.MonkeyPatch())


class AtOnceWorker(NodeWorker):
    """Forge's own worker on a machine that answers every job at once."""

    def __init__(self, device: str | None) -> None:
        super().__init__(device)
        self._answering = Answering(AtOnce(Path(tempfile.gettempdir()) / "forge-measuring.lock"))

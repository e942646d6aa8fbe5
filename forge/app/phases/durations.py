"""Estimates how long a phase still takes, from how long it took before in this workspace.

The times are kept in a file beside the runs. Nothing is decided by them, and the file may be deleted.
"""

import json
import math
import os
import statistics
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

FILE = "durations.json"
"""Name of the file in the folder of runs."""
MOST_KEPT = 60
"""Number of phases that the file remembers; the oldest is forgotten first. Chosen; it is twelve times `MOST_ASKED`,
so that several kinds of phases stay."""
MOST_ASKED = 5
"""Number of earlier phases that an estimate is the median of: the newest ones, as machines and judges change."""
LARGEST_BYTES = 2**20
"""Largest size in bytes of `FILE` that is read. Sixty phases take some 60 KiB."""


@dataclass(frozen=True)
class Subject:
    """What a phase works on, as far as its time depends on it."""

    op: str
    language: str
    gpu: str


@dataclass(frozen=True)
class PastPhase:
    """One phase that ended: when each step began, and when the phase ended, in seconds since its beginning."""

    phase: str
    subject: Subject
    passed: bool
    began_s: dict[str, float]
    total_s: float


@dataclass
class Durations:
    """The steps of the phase that runs, beside those of earlier ones."""

    path: Path
    phase: str
    subject: Subject
    now_s: Callable[[], float]
    """Function that returns the seconds since the phase began."""
    began_s: dict[str, float] = field(default_factory=dict)
    step: str = ""

    def begin(self, step: str) -> None:
        """Note the second at which a step begins, once."""
        self.step = step
        self.began_s.setdefault(step, self.now_s())

    def left_s(self) -> float | None:
        """Return how many more seconds the phase takes by earlier ones; None if none had this step.

        It is below zero once the phase takes longer than they did.
        """
        like = [one for one in self._like if self.step in one.began_s][-MOST_ASKED:]
        if not like:
            return None
        after_step_s = statistics.median(one.total_s - one.began_s[self.step] for one in like)
        return after_step_s - (self.now_s() - self.began_s[self.step])

    def keep(self, *, passed: bool) -> None:
        """Remember this phase. A folder that can't be written to is no fault."""
        if not self.began_s:
            return
        ended = PastPhase(self.phase, self.subject, passed, self.began_s, self.now_s())
        kept = [*_read(self.path), ended][-MOST_KEPT:]
        written = self.path.with_name(f".{FILE}.{os.getpid()}")
        with suppress(OSError):
            written.write_text(json.dumps([_document(one) for one in kept]))
            written.replace(self.path)

    @cached_property
    def _like(self) -> list[PastPhase]:
        """The phases to go by: those of this language and device that passed, of this operation if there are any."""
        own = (self.phase, self.subject.language, self.subject.gpu)
        like = [one for one in _read(self.path) if (one.phase, one.subject.language, one.subject.gpu) == own]
        passed = [one for one in like if one.passed] or like
        return [one for one in passed if one.subject == self.subject] or passed


def _read(path: Path) -> list[PastPhase]:
    """Return what the file remembers; nothing if it can't be read or holds something else."""
    try:
        if path.stat().st_size > LARGEST_BYTES:
            return []
        return [_parsed(one) for one in json.loads(path.read_bytes())]
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return []


def _parsed(untrusted: dict[str, object]) -> PastPhase:
    """Return one phase; raise ValueError, TypeError or LookupError for anything else."""
    times = untrusted["began_s"]
    subject = Subject(*(str(untrusted[name]) for name in ("op", "language", "gpu")))
    if not isinstance(times, dict):
        raise TypeError("began_s isn't an object")
    began_s = {str(step): _seconds(at) for step, at in times.items()}
    total_s = _seconds(untrusted["total_s"])
    return PastPhase(str(untrusted["phase"]), subject, untrusted["passed"] is True, began_s, total_s)


def _seconds(untrusted: object) -> float:
    found = float(untrusted) if isinstance(untrusted, int | float) else math.nan
    if not 0 <= found < math.inf:
        raise ValueError(f"{untrusted!r} is no number of seconds")
    return found


def _document(one: PastPhase) -> dict[str, object]:
    return {
        "phase": one.phase,
        "op": one.subject.op,
        "language": one.subject.language,
        "gpu": one.subject.gpu,
        "passed": one.passed,
        "began_s": {step: round(at, 2) for step, at in one.began_s.items()},
        "total_s": round(one.total_s, 2),
    }

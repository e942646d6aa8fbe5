"""Runs lab jobs on this machine, one measurement at a time."""

import fcntl
import importlib.util
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forge.domain.evidence import Isolation
from forge.errors import EnvironmentUnfit
from forge.lab.examine import Examination, examine
from forge.lab.finding import Failed
from forge.lab.guests import own_claims
from forge.lab.job import Job, Progress
from forge.lab.roofline import cached_bandwidth_bytes_per_s, floor_ns
from forge.lab.timing import Attempt, measure
from forge.sandbox.probe import probe
from forge.sandbox.reply import ArtifactFile

LAB_PACKAGES = ("torch", "numpy", "hypothesis")


def isolation() -> Isolation:
    """The strongest wall that this machine can build, found out by building it."""
    found = probe()
    return Isolation(level=found.level, parts=found.parts, missing=found.missing)


def require_lab() -> None:
    """Raise EnvironmentUnfit where Forge was installed without what judging needs."""
    missing = _missing()
    if missing:
        raise EnvironmentUnfit(
            f"{' and '.join(missing)} can't be imported: judging and timing need the lab",
            hint="pip install 'tensorpath-forge[lab]'",
        )


def lab_is_installed() -> bool:
    """Whether what judging needs is there."""
    return not _missing()


def _missing() -> list[str]:
    return [name for name in LAB_PACKAGES if importlib.util.find_spec(name) is None]


class LocalExecutor:
    """Lab jobs in this process, their guests beside it; `lock` is held while a clock runs."""

    def __init__(self, lock: Path) -> None:
        self._lock = lock

    def examine(self, job: Job, *, progress: Progress) -> Examination:
        """Judge a candidate."""
        return examine(job, progress=progress)

    def measure(
        self, job: Job, artifact: tuple[ArtifactFile, ...], *, rng: random.Random, progress: Progress
    ) -> Attempt | Failed:
        """Time a candidate against its baselines, while no other measurement runs on this machine."""
        with self._alone():
            return measure(job, artifact, rng=rng, progress=progress)

    def floor_ns(self, job: Job) -> float:
        """The fastest time that is believed for the job's shape on this machine."""
        moved = job.operation.bytes_moved(job.shape, job.dtype)
        return floor_ns(moved, cached_bandwidth_bytes_per_s(job.threads))

    def own_claims(self, job: Job, artifact: tuple[ArtifactFile, ...]) -> dict[str, float]:
        """What the candidate's bench.py says about it."""
        return own_claims(job, artifact)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        with self._lock.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # a crash closes the file, and with it the lock
            yield

"""A machine of Forge that answers every job at once, with what was made up beforehand: nothing is built or run.

A candidate's source says what becomes of it: with `# refuse` it is refused, with `# slow` it is slower than eager,
and otherwise it is twice as fast. With `# watched FOLDER` each job adds a line to `calls` in that folder, and waits
while there is a file `hold` there. Run as a program it is Forge's command line on such a machine.
"""

import os
import random
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
from forge.__main__ import main
from forge.app.machine import chosen_executor
from forge.domain.device import Ceilings
from forge.domain.evidence import GateResult, WorkloadErrors
from forge.domain.verdict import Accepted, Reason, Rejected
from forge.executor import MayStop
from forge.executor.local import LocalExecutor
from forge.lab.contenders.present import PresentContender
from forge.lab.gates import gates_for
from forge.lab.job import Incumbent, Job, Progress
from forge.lab.timing.slope import SlopeSamples
from forge.lab.verification import Examination
from forge.sandbox.reply import ArtifactFile
from tests.app.prepared import samples

FAST_NS = 50_000
"""Time of a candidate in nanoseconds, half of eager's 100 us."""
SLOW_NS = 150_000
"""Time of a slow candidate in nanoseconds, half as much again as eager's 100 us, so that it isn't promoted."""
BUILT = ArtifactFile("kernel.so", bytes(100_000))
"""Built file, as large as that of a small C++ kernel."""


class AtOnce(LocalExecutor):
    """Answers without work."""

    def examine(self, job: Job, *, progress: Progress) -> Examination:
        """Refuse a candidate whose source says so, and accept any other."""
        _watched("examine", job, progress)
        gates = tuple(
            GateResult(name=gate.name, verdict="passed", observed="0.1 x the bound", threshold="1")
            for gate in gates_for(job.definition)
        )
        errors = WorkloadErrors(shape=dict(job.shape), inputs="normal", max_relative_error=1e-7, bound_used=0.1)
        if b"# refuse" in job.files["kernel.py"]:
            reason = Reason(code="INCORRECT_NUMERICAL", message="3.2 x the bound")
            return Examination(verdict=Rejected(reason=reason), stage="verify", gates=gates[:3])
        return Examination(verdict=Accepted(), stage="verify", gates=gates, workloads=(errors,), artifact=(BUILT,))

    def measure(
        self,
        job: Job,
        artifact: tuple[ArtifactFile, ...],
        incumbent: Incumbent | None,
        contenders: Sequence[PresentContender] = (),
        *,
        ceilings: Ceilings | None,
        rng: random.Random,
        progress: Progress,
        may_stop: MayStop | None = None,
    ) -> SlopeSamples:
        """Return samples of a candidate that is as fast as its source says."""
        assert artifact
        assert rng
        assert (incumbent, tuple(contenders), ceilings) == (None, (), None)
        assert may_stop is None or callable(may_stop)
        _watched("measure", job, progress)
        took_ns = SLOW_NS if b"# slow" in job.files["kernel.py"] else FAST_NS
        (attempt,) = samples(candidate_ns=took_ns, pairs=2).attempts
        assert isinstance(attempt, SlopeSamples)
        return attempt

    def own_claims(self, job: Job, artifact: tuple[ArtifactFile, ...], *, progress: Progress) -> dict[str, float]:
        """Return no claim."""
        assert job
        assert artifact
        progress("no claims")
        return {}

    def floor_ns(self, job: Job, *, ceilings: Ceilings | None, resident: bool = False) -> float:
        """Return a time that either candidate can have."""
        assert job
        assert ceilings is None
        return 20_000.0 if not resident else 10_000.0


def _watched(call: str, job: Job, progress: Progress) -> None:
    """Write down what is asked, where the source wants it, and wait while it says so."""
    named = re.search(rb"# watched (.+)", job.files["kernel.py"])
    if named is None:
        progress("answered at once")
        return
    folder = Path(named[1].decode())
    with (folder / "calls").open("a") as calls:
        calls.write(f"{call} {os.getpid()}\n")
    progress("watched")
    while (folder / "hold").exists():
        time.sleep(0.01)


def answer_at_once() -> None:
    """Let this process be such a machine."""
    chosen_executor.LocalExecutor = AtOnce  # type: ignore[misc]


if __name__ == "__main__":
    answer_at_once()
    main()

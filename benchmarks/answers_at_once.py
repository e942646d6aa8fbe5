"""A machine of Forge that answers every job at once, with what was made up beforehand: nothing is built or run.

`benchmarks/decisions.py` lets workers ask it, so that only the head is measured: sending, checking, recording.
"""

import random
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from forge.__main__ import main
from forge.domain.device import Ceilings
from forge.domain.evidence import GateResult, WorkloadErrors
from forge.domain.verdict import Accepted, Reason, Rejected
from forge.executor import MayStop
from forge.executor.local import LocalExecutor
from forge.lab.contenders.present import PresentContender
from forge.lab.examine import Examination
from forge.lab.gates import gates_for
from forge.lab.job import Incumbent, Job, Progress
from forge.lab.timing.slope import SlopeSamples
from forge.sandbox.reply import ArtifactFile
from tests.app.prepared import samples

TOO_SLOW_NS = 150_000
"""Time of a candidate in nanoseconds, half as fast again as eager's 100 us is slow, so that no kernel is promoted."""
BUILT = ArtifactFile("kernel.so", bytes(100_000))
"""Built file, as large as that of a small C++ kernel."""


def examine(_: LocalExecutor, job: Job, *, progress: Progress) -> Examination:
    """Refuse a candidate whose source says so, and accept any other."""
    progress("answered at once")
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
    _: LocalExecutor,
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
    """Return samples of a candidate that is slower than eager."""
    assert job
    assert artifact
    assert (incumbent, tuple(contenders), ceilings, may_stop) == (None, (), None, None)
    assert rng
    progress("answered at once")
    (attempt,) = samples(candidate_ns=TOO_SLOW_NS, pairs=2).attempts
    assert isinstance(attempt, SlopeSamples)
    return attempt


if __name__ == "__main__":
    LocalExecutor.examine = examine  # type: ignore[assignment, method-assign]
    LocalExecutor.measure = measure  # type: ignore[assignment, method-assign]
    LocalExecutor.own_claims = lambda *_, **__: {}  # type: ignore[method-assign]
    LocalExecutor.floor_ns = lambda *_, **__: 20_000.0  # type: ignore[method-assign]
    main()

"""Uses torch's profiler to find the operators and kernels that take a call's time, if counters aren't available.

A candidate without a launch plan is profiled in its own guest, which could write the table itself. One with a plan is
profiled in a launcher without its host code.
"""

import math

from pydantic import TypeAdapter, ValidationError

from forge.domain.profile import OperatorTime
from forge.errors import EnvironmentUnfit
from forge.lab.calls.artifact import staged_files
from forge.lab.calls.load import loaded, staged
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed
from forge.lab.job import Job
from forge.lab.launch_plan.launcher import kept_plan, launched
from forge.sandbox.reply import ArtifactFile, Refused

CALLS = 32
"""Number of profiled calls. Chosen; the table gives means, and each call costs its time under the profiler."""
LIMIT_BYTES = 2**20
"""Size of a table in bytes, at most. Chosen; a guest may write the table, and the host reads all of it."""
_ROWS = TypeAdapter(tuple[OperatorTime, ...])


def count_operators(job: Job, artifact: tuple[ArtifactFile, ...]) -> tuple[OperatorTime, ...]:
    """Return the operators and kernels of `CALLS` calls at the public shape, the longest first.

    Raise EnvironmentUnfit.
    """
    plan = kept_plan(artifact)
    limits = job.limits(job.policy.verify_limit_s)
    if plan is not None:
        with launched(job, plan, limits) as kernel:
            return _counted(job, kernel)
    with staged(job, staged_files(job, artifact), {}) as stage, loaded(job, stage, limits, label="profile") as kernel:
        return _counted(job, kernel)


def _counted(job: Job, kernel: LoadedKernel | Failed) -> tuple[OperatorTime, ...]:
    if isinstance(kernel, Failed):
        raise EnvironmentUnfit(
            f"the candidate can't be loaded under the profiler: {kernel.reason.message}", hint="forge doctor"
        )
    called = kernel.call([kernel.case(job.shape)])
    if isinstance(called, Failed):
        raise EnvironmentUnfit(
            f"the candidate can't be called under the profiler: {called.reason.message}", hint="forge doctor"
        )
    answer = kernel.count_operators(CALLS)
    if isinstance(answer, Refused):
        raise EnvironmentUnfit(f"torch's profiler gave nothing: {answer.reason.message}", hint="forge doctor")
    return parse_operators(answer)


def parse_operators(untrusted: bytes) -> tuple[OperatorTime, ...]:
    """Read a guest's table; raise EnvironmentUnfit for anything that isn't one."""
    try:
        if len(untrusted) > LIMIT_BYTES:
            raise ValueError(f"{len(untrusted)} bytes, expected at most {LIMIT_BYTES}")
        rows = _ROWS.validate_json(untrusted)
    except (ValidationError, ValueError) as error:
        raise EnvironmentUnfit(f"the profiler's table can't be read ({str(error)[:300]}): profile again") from error
    if not rows or not math.isfinite(sum(row.self_ns + row.device_ns for row in rows)):
        raise EnvironmentUnfit("the profiler's table can't be read: expected at least one row with finite times")
    return rows

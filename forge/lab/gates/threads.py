"""Is it right with more threads than processors? Room that was counted here for each may be too little there."""

import dataclasses
from collections.abc import Mapping

from forge.errors import EnvironmentUnfit
from forge.lab.calls.load import loaded, staged
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.inputs.random_sizes import odd
from forge.lab.inputs.seeded import Seeded
from forge.lab.inputs.shape_budget import narrowed
from forge.lab.job import Job

MORE = (1, 3, 5)
"""Threads beyond those that a guest has otherwise, one of these by lot."""
ROWS_EACH, WIDTHS = 9, (1025, 2047)
"""Rows for each thread, and between which the odd width lies, in the second question."""
ATTEMPTS = 3
NO_THREAD = "Resource temporarily unavailable"
"""What C's runtime says where a thread can't be started (errno 11, EAGAIN)."""
THRESHOLD = "1 x the bound, every element"


def applies(job: Job) -> bool:
    """Whether a processor's threads do the work, and values may be drawn freely."""
    return job.device == "cpu" and not job.interpreted and job.operation.own is None


def examine(job: Job, files: Mapping[str, bytes]) -> Finding:
    """Ask a guest of its own, at the public shape and with many rows.

    A thread that couldn't be started says nothing of a candidate: the machine's guests share a number of them. Raise
    EnvironmentUnfit where that is so each time.
    """
    for attempt in range(ATTEMPTS):
        finding = _ask(job, files, f"threads {attempt}")
        if not (isinstance(finding, Failed) and NO_THREAD in finding.log):
            return finding
    raise EnvironmentUnfit("no more threads can be started for guests here", hint="end other work, then verify again")


def _ask(job: Job, files: Mapping[str, bytes], label: str) -> Finding:
    rng = Seeded(job.seed, label)
    count = job.threads + rng.choice(MORE)
    rows, reduced = job.operation.row_axis, job.operation.reduced_axis
    many = narrowed(job.operation, {**job.shape, rows: ROWS_EACH * count, reduced: odd(rng, *WIDTHS)})
    limits = job.limits(job.policy.verify_limit_s)
    with (
        staged(job, files, {}) as stage,  # as in front of the gates: that zygote waits already
        loaded(job, stage, limits, label=label, threads=count, fills_memory=True) as kernel,
    ):
        if isinstance(kernel, Failed):
            return _with_threads(kernel, count)
        asked = (job.shape, many, many)
        for shape in asked:
            checked = kernel.check([kernel.case(shape)])
            if isinstance(checked, Failed):
                return _with_threads(checked, count)
    return Passed(observed=f"{len(asked)} calls with {count} threads", threshold=THRESHOLD)


def _with_threads(failed: Failed, count: int) -> Failed:
    message = f"with {count} threads: {failed.reason.message}"
    return dataclasses.replace(failed, reason=failed.reason.model_copy(update={"message": message}))

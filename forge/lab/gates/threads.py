"""Is it correct with more threads than processors, with one thread alone, and with each number of a few threads?

A buffer with room for one thread per processor may be too small. Work that is divided between two threads may stay
half done. Work that three threads share may be left over, as an even number is often taken for granted.
"""

import dataclasses
from collections.abc import Mapping

from forge.errors import EnvironmentUnfit
from forge.lab.calls.load import loaded, staged
from forge.lab.calls.refusal import THRESHOLD
from forge.lab.finding import Failed, Finding, Passed
from forge.lab.inputs.random_sizes import odd_size
from forge.lab.inputs.seeded import Seeded
from forge.lab.inputs.shape_budget import largest_operand, narrowed
from forge.lab.job import Job
from forge.lab.runner import PROCESSOR
from forge.sandbox.stage import Stage

EXTRA_THREADS = (31, 15, 5)
"""Number of threads beyond those that a guest usually has, in each attempt: fewer if some couldn't be started.
Buffers of real kernels have room for 8, 16 or 32 threads; with 127 more, none could be started."""
FEW_THREADS = range(2, 9)
"""Numbers of threads that are all asked, with three short questions each. Chosen; serving programs mostly give a
kernel so few, and each costs a guest."""
ROWS_PER_THREAD, WIDTHS = 9, (1025, 2047)
"""Number of rows for each thread, and the range of the odd width, in the second question."""
NO_THREAD = "Resource temporarily unavailable"
"""Message of C's runtime if a thread can't be started (errno 11, EAGAIN)."""
ROW_WIDTHS = (1025, 4095)
"""Range from which an odd width of a single row is drawn, which several threads may share."""
MOST_FREE = 5
"""Largest size of any other axis in a question to few threads. Chosen: seven numbers of threads are asked, so a
question must be short."""
MOST_ELEMENTS = 2**18
"""Largest number of elements of an operand in a question to few threads. Chosen for the same reason."""


def applies(job: Job) -> bool:
    """Return whether a processor's threads do the work, and the operation is defined at any number of rows."""
    return job.runner is PROCESSOR and "sizes" in job.definition.declares


def examine(job: Job, files: Mapping[str, bytes]) -> Finding:
    """Ask a guest with more threads and one with a single thread, at the public shape and with many rows.

    Ask guests with few threads first a single row, then fewer rows than threads, then many. A kernel that chooses its
    way in its first call is then asked for another one.

    The machine's guests share a limit on threads, so a thread that can't be started says nothing about the candidate.
    Raise EnvironmentUnfit if this happens in every attempt.
    """
    with staged(job, files, {}, from_one_thread=True) as stage:  # its guests are forked from the gates' zygote
        for extra in EXTRA_THREADS:
            finding = _ask_with_each_count(job, stage, extra, Seeded(job.seed, f"{extra} more threads"))
            if not (isinstance(finding, Failed) and NO_THREAD in finding.log):
                return finding
    raise EnvironmentUnfit(
        "no more threads can be started for guests on this machine", hint="end other work, then verify again"
    )


def _ask_with_each_count(job: Job, stage: Stage, extra: int, rng: Seeded) -> Finding:
    few = [count for count in FEW_THREADS if count != job.threads]
    counts = (job.threads + extra, *((1,) if job.threads > 1 else ()), *few)
    calls = 0
    for count in counts:
        asked = _ask(job, stage, count, rng)
        if isinstance(asked, Failed):
            return asked
        calls += asked
    return Passed(observed=f"{calls} calls with {', '.join(map(str, counts))} threads", threshold=THRESHOLD)


def _ask(job: Job, stage: Stage, count: int, rng: Seeded) -> int | Failed:
    """Ask a guest with `count` threads; return the number of calls."""
    rows, reduced = job.operation.row_axis, job.operation.reduced_axis
    many = narrowed(job.operation, {**job.shape, rows: ROWS_PER_THREAD * count, reduced: odd_size(rng, *WIDTHS)})
    limits = job.limits(job.policy.verify_limit_s)
    label = f"{count} threads"
    with loaded(job, stage, limits, label=label, threads=count, fills_memory=True) as kernel:
        if isinstance(kernel, Failed):
            return _with_threads(kernel, count)
        one_row = {**job.shape, rows: 1, reduced: odd_size(rng, *ROW_WIDTHS)}
        few_rows = {**job.shape, rows: rng.randint(2, max(2, count - 1)), reduced: rng.randint(*ROW_WIDTHS)}
        asked = (
            (_shortened(job, one_row), _shortened(job, few_rows), _shortened(job, many))
            if count in FEW_THREADS
            else (job.shape, many, many, one_row, _shortened(job, few_rows))
        )
        for shape in asked:
            checked = kernel.check([kernel.case(shape)])
            if isinstance(checked, Failed):
                return _with_threads(checked, count)
    return len(asked)


def _shortened(job: Job, shape: Mapping[str, int]) -> Mapping[str, int]:
    """Return the shape with short free axes and rows short enough that a call takes milliseconds."""
    free = {axis: min(MOST_FREE, shape[axis]) for axis in job.operation.free_axes}
    column = largest_operand(job.operation, {**shape, **free, job.operation.reduced_axis: 1})
    width = max(1, min(shape[job.operation.reduced_axis], MOST_ELEMENTS // max(1, column)))
    return {**shape, **free, job.operation.reduced_axis: width}


def _with_threads(failed: Failed, count: int) -> Failed:
    message = f"with {count} thread{'s' * (count > 1)}: {failed.reason.message}"
    return dataclasses.replace(failed, reason=failed.reason.model_copy(update={"message": message}))

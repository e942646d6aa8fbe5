"""Loads a candidate for the gates: stages it, starts a guest, loads it, with an arena for its operands."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from forge.domain.verdict import Reason
from forge.lab.calls.asked_operation import AskedOperation
from forge.lab.calls.loaded_guest import LoadedGuest
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.calls.refusal import require_verdict
from forge.lab.finding import Failed
from forge.lab.inputs.inside import Inside, held_out_inside
from forge.lab.job import Job
from forge.lab.runner import PROCESSOR, Runner
from forge.sandbox.arena import Arena
from forge.sandbox.limits import Limits
from forge.sandbox.reply import OTHER_STATE_MESSAGE, Refused
from forge.sandbox.session import GuestFunction, Session
from forge.sandbox.stage import Program, Stage

BETWEEN_BYTES = 2**25
"""Size in bytes of all red zones between operands, if there are as many as a state dict has tensors. Chosen; two
pages each for 4,000 tensors."""
OPERATORS, OPERATORS_MODULES = b"torch.library", ("torch._dynamo",)
"""Text of a kernel that registers an operator of torch's, and the modules that torch then imports at the first call.
It takes three seconds, and a verification has a dozen guests."""
NAMES_LIMIT = 600
"""Number of characters of a state dict's names in a refusal, at most. Chosen; a large module has thousands of names,
too many for an error."""


def arena_bytes(job: Job) -> int:
    """Return the size of the arena of a job's guest in bytes: the usual one, or more for large operands."""
    of_a_call = job.operation.operand_bytes(job.shape, job.dtype)
    return arena_bytes_for(max(job.definition.set_bytes, of_a_call), job.runner)


def arena_bytes_for(set_bytes: int, runner: Runner = PROCESSOR) -> int:
    """Return the size of an arena in bytes that holds a few sets of operands."""
    return max(runner.least_arena_bytes, runner.sets_at_once * set_bytes + BETWEEN_BYTES)


def _rare_modules(job: Job, files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return what a process imports before it forks the candidate's guests.

    On a GPU it is nothing: guests can't use CUDA if the process that forks them has begun it, and an import may.
    """
    needed = job.device == "cpu" and OPERATORS in files.get("kernel.py", b"")
    return OPERATORS_MODULES if needed else ()


@contextmanager
def staged(
    job: Job,
    files: Mapping[str, bytes],
    environment: Mapping[str, str],
    *,
    wrapper: tuple[str, ...] = (),
    from_one_thread: bool = False,
) -> Iterator[Stage]:
    """Stage the candidate's files for a guest while the context lasts.

    A `wrapper`, a program with its options, starts the guest's interpreter. With `from_one_thread` all calls come
    from the guest's first thread. The candidate's own OpenMP code then keeps to any number of threads that is set
    there.
    """
    program = Program(
        language=job.language,
        files=files,
        environment={**job.environment, **environment},
        device=job.device,
        gpu=job.gpu,
        wrapper=wrapper,
        warm=not wrapper,
        rare_modules=_rare_modules(job, files),
        zygote_threads=None if job.language.builds and not from_one_thread else job.threads,
        allowance=job.allowance,
    )
    stage = Stage(program, job.isolation)
    try:
        yield stage
    finally:
        stage.remove()


@contextmanager
def loaded(
    job: Job,
    stage: Stage,
    limits: Limits,
    function: GuestFunction | None = None,
    *,
    threads: int | None = None,
    label: str,
    fills_memory: bool = False,
) -> Iterator[LoadedKernel | Failed]:
    """Start a guest that loads the candidate, or another function of its stage; yield it, or why it didn't load.

    Its questions follow from the job's seed and the label.
    """
    arena = Arena(arena_bytes(job))
    try:
        with Session(stage, arena, limits=limits, threads=threads or job.threads) as session:
            answer = session.load((function or job.candidate_function(),))
            if isinstance(answer, Refused):
                yield _not_loaded(job, answer)
            else:
                tunes = function is None and job.language.tunes
                guest = LoadedGuest(session, arena, job.entry_point, fills_memory=fills_memory, tunes=tunes)
                kernel = LoadedKernel(guest, _asked(job), seed=job.seed)
                kernel.begin(label)
                yield kernel
    finally:
        arena.close()


def _not_loaded(job: Job, refused: Refused) -> Failed:
    require_verdict(refused)
    reason, names = refused.reason, ", ".join(job.definition.state_names)
    if reason.message == OTHER_STATE_MESSAGE and names:
        reason = Reason(code=reason.code, message=f"{reason.message}. The reference's names: {names[:NAMES_LIMIT]}")
    return Failed(reason=reason, observed=reason.message, threshold="kernel.py loads", log=refused.log)


def _asked(job: Job) -> AskedOperation:
    return AskedOperation(
        operation=job.operation,
        shape=job.shape,
        dtype=job.dtype,
        policy=job.policy,
        runner=job.runner,
        held_out=held_out_inside(job.held_out, job.domain, job.shape, job.seed),
        claimed=job.metadata.layouts,
        inside=Inside(job.operation, job.shape, job.domain, job.runner),
    )

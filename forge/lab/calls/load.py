"""A candidate in front of the gates: staged, started, loaded, with an arena to be asked through."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from forge.domain.own_operation import Contract
from forge.domain.verdict import Reason
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.finding import Failed
from forge.lab.job import Job
from forge.sandbox.arena import Arena
from forge.sandbox.limits import Limits
from forge.sandbox.reply import Refused
from forge.sandbox.session import GuestFunction, Session
from forge.sandbox.stage import Program, Stage

ARENA_BYTES = 768 * 2**20
SETS_AT_ONCE, DEVICE_SETS_AT_ONCE = 4, 8
"""Sets of a reference file's operands that lie in an arena at once, at least; on a device so many are timed."""
BETWEEN_BYTES = 2**25
"""For the red zones between as many operands as a state dict has tensors."""
NAMES_LIMIT = 600
"""Characters of a state dict's names in a refusal."""
DEVICE_ARENA_BYTES = 16 * 2**30
"""Address space, not memory, until it is written: room for operands past 2^31 bytes where a device can hold them."""


def arena_bytes(job: Job) -> int:
    """How large the arena of a job's guest is: on a CPU as the catalogue needs it, or a reference file."""
    own = job.operation.own
    least, sets = (ARENA_BYTES, SETS_AT_ONCE) if job.device == "cpu" else (DEVICE_ARENA_BYTES, DEVICE_SETS_AT_ONCE)
    return least if own is None else max(least, own_arena_bytes(own.contract, sets))


def own_arena_bytes(contract: Contract, sets: int = SETS_AT_ONCE) -> int:
    """How large an arena is that a few sets of a reference file's operands lie in."""
    return max(ARENA_BYTES, sets * contract.set_bytes + BETWEEN_BYTES)


@contextmanager
def staged(
    job: Job, files: Mapping[str, bytes], environment: Mapping[str, str], *, wrapper: tuple[str, ...] = ()
) -> Iterator[Stage]:
    """The candidate's files where a guest finds them, for as long as the context lasts.

    With a `wrapper`, a program and its options, that is what starts the guest's interpreter.
    """
    program = Program(
        language=job.language,
        files=files,
        environment={**job.environment, **environment},
        device=job.device,
        gpu=job.gpu,
        wrapper=wrapper,
        warm=not wrapper,
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
    """A guest that has loaded the candidate (or another function of its stage), or why it hasn't.

    Its questions follow from the job's seed and the label.
    """
    arena = Arena(arena_bytes(job))
    try:
        with Session(stage, arena, limits=limits, threads=threads or job.threads) as session:
            answer = session.load((function or GuestFunction("kernel.py", job.entry_point, wrap=job.wrap),))
            if isinstance(answer, Refused):
                yield _not_loaded(job, answer)
            else:
                kernel = _kernel(job, session, arena, fills_memory=fills_memory)
                kernel.begin(label)
                yield kernel
    finally:
        arena.close()


def _not_loaded(job: Job, refused: Refused) -> Failed:
    reason, own = refused.reason, job.operation.own
    if own is not None and reason.code == "BAD_SUBMISSION" and own.contract.weights:
        names = ", ".join(name for weight in own.contract.weights for name in weight.names)
        reason = Reason(code=reason.code, message=f"{reason.message}; the reference's names: {names[:NAMES_LIMIT]}")
    return Failed(reason=reason, observed=reason.message, threshold="kernel.py loads", log=refused.log)


def _kernel(job: Job, session: Session, arena: Arena, *, fills_memory: bool) -> LoadedKernel:
    return LoadedKernel(
        session,
        arena,
        operation=job.operation,
        shape=job.shape,
        held_out=job.held_out,
        dtype=job.dtype,
        policy=job.policy,
        entry=job.entry_point,
        device=job.device,
        claimed=job.metadata.layouts,
        interpreted=job.interpreted,
        fills_memory=fills_memory,
        seed=job.seed,
    )

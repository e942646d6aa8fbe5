"""A candidate in front of the gates: staged, started, loaded, with an arena to be asked through."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from forge.lab.finding import Failed
from forge.lab.job import Job
from forge.lab.probe import Probe
from forge.sandbox.arena import Arena
from forge.sandbox.limits import Limits
from forge.sandbox.reply import Refused
from forge.sandbox.session import GuestFunction, Session
from forge.sandbox.stage import Program, Stage

ARENA_BYTES = 768 * 2**20
DEVICE_ARENA_BYTES = 16 * 2**30
"""Address space, not memory, until it is written: room for operands past 2^31 bytes where a device can hold them."""


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
def loaded(job: Job, stage: Stage, limits: Limits, function: GuestFunction | None = None) -> Iterator[Probe | Failed]:
    """A guest that has loaded the candidate (or another function of its stage), or why it hasn't."""
    arena = Arena(ARENA_BYTES if job.device == "cpu" else DEVICE_ARENA_BYTES)
    try:
        with Session(stage, arena, limits=limits, threads=job.threads) as session:
            answer = session.load((function or GuestFunction("kernel.py", job.entry_point),))
            yield _not_loaded(answer) if isinstance(answer, Refused) else _probe(job, session, arena)
    finally:
        arena.close()


def _not_loaded(refused: Refused) -> Failed:
    message = refused.reason.message
    return Failed(reason=refused.reason, observed=message, threshold="kernel.py loads", log=refused.log)


def _probe(job: Job, session: Session, arena: Arena) -> Probe:
    return Probe(
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
    )

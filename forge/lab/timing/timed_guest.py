"""Opens one guest to be timed: started, loaded, and called once."""

import dataclasses
from contextlib import ExitStack

from forge.errors import EnvironmentUnfit
from forge.lab.calls.asked_operation import AskedOperation
from forge.lab.calls.load import arena_bytes
from forge.lab.calls.loaded_guest import LoadedGuest
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.calls.refusal import require_verdict
from forge.lab.finding import Failed
from forge.lab.inputs.draw import draw
from forge.lab.inputs.seeded import new_seed
from forge.lab.job import Job
from forge.lab.observed import Case
from forge.sandbox.arena import Arena
from forge.sandbox.reply import Refused
from forge.sandbox.session import GuestFunction, Session
from forge.sandbox.stage import Stage

WHOLE_LIMIT_S = 7200.0
"""Processor seconds of one thread of a guest that is asked many times. Chosen: two hours, since the policy limits
each reply."""
MOST_SAID = 500
"""Number of characters of a trusted side's log that an error shows, from the log's end. Chosen: an exception and the
line that raised it."""


def first_case(job: Job) -> Case:
    """Draw operands for the first call of every guest of one measurement; drawing large ones takes long."""
    operation, seed = job.operation, new_seed()
    inputs = draw(operation, job.shape, job.dtype, "normal", seed=seed)
    return Case(job.shape, "normal", seed, inputs, tuple(operation.scalars.values()))


def open_timed(
    stack: ExitStack,
    job: Job,
    stage: Stage,
    functions: tuple[GuestFunction, ...],
    *,
    first: Case | None = None,
) -> LoadedKernel | Failed:
    """Start a guest that ends with `stack`, load the functions, and call each of them once: on `first`, if given."""
    kernel = open_loaded(stack, job, stage, functions)
    if isinstance(kernel, Failed):
        return kernel
    for index in range(len(functions)):
        called = kernel.call([first or kernel.case(kernel.shape)], function=index)
        if isinstance(called, Failed):
            return called
    return kernel


def open_loaded(
    stack: ExitStack, job: Job, stage: Stage, functions: tuple[GuestFunction, ...]
) -> LoadedKernel | Failed:
    """Start a guest that ends with `stack`, and load the functions."""
    arena = Arena(arena_bytes(job))
    stack.callback(arena.close)
    limits = dataclasses.replace(job.limits(WHOLE_LIMIT_S), reply_cpu_s=job.policy.benchmark_limit_s)
    session = stack.enter_context(Session(stage, arena, limits=limits, threads=job.threads))
    loaded = session.load(functions)
    if isinstance(loaded, Refused):
        require_verdict(loaded)
        reason = loaded.reason
        return Failed(reason=reason, observed=reason.message, threshold="every side loads", log=loaded.log)
    asked = AskedOperation(
        operation=job.operation, shape=job.shape, dtype=job.dtype, policy=job.policy, runner=job.runner
    )
    return LoadedKernel(LoadedGuest(session, arena, functions[0].entry_point), asked)


def side_of_baselines(job: Job) -> str:
    """Return the words for the process that has the baselines."""
    return f"one of the baselines ({', '.join(job.baselines)}; policy.toml can leave out one that can't run here)"


def require_opened(opened: LoadedKernel | Failed, side: str) -> LoadedKernel:
    """Return the loaded kernel of a trusted side; raise EnvironmentUnfit if it failed, as the machine is at fault."""
    if isinstance(opened, Failed):
        said = opened.log if len(opened.log) <= MOST_SAID else opened.log[-MOST_SAID:].partition("\n")[2]
        raise EnvironmentUnfit(f"{side} failed on this machine: {opened.reason.message}; {said.strip()}")
    return opened

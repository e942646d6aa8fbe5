"""Runs a tool on a verified candidate: counters of its launch plan, or its machine code."""

import dataclasses

from forge.domain.digest import Value
from forge.domain.profile import CodeFacts, Diagnosis, KernelProfile
from forge.errors import EnvironmentUnfit
from forge.lab.calls.load import loaded
from forge.lab.calls.trusted import trusted_program
from forge.lab.finding import Failed
from forge.lab.job import Job
from forge.lab.launch_plan.launcher import LAUNCH, kept_plan, launcher_files
from forge.lab.profile import machine_code, ncu
from forge.lab.profile.bottleneck import diagnose
from forge.sandbox.plans import Captured
from forge.sandbox.reply import ArtifactFile
from forge.sandbox.stage import Stage

LOG_BYTES = 4 * 2**20
"""Size of a profiled guest's log in bytes, which holds the tool's table. Chosen: 64 times the usual kept log. The
host reads all of it."""


class Counters(Value):
    """The counters of each launch of a plan, and what limits the longest one."""

    kernels: tuple[KernelProfile, ...]
    diagnosis: Diagnosis
    raw: str
    """Output of the tool."""


def capture_counters(job: Job, artifact: tuple[ArtifactFile, ...]) -> Counters:
    """Launch the candidate's plan under ncu, in a launcher without its host code.

    Raise EnvironmentUnfit if there is no plan, no tool, or no right to read counters.
    """
    captured = kept_plan(artifact)
    if captured is None:
        raise EnvironmentUnfit(
            "this candidate has no launch plan: expected one, since counters are taken from its plan's launches",
            hint="forge profile RUN --tool cuobjdump, or verify it anew on a GPU",
        )
    own = {step.name for step in captured.plan.steps if step.kind == "kernel"}
    raw = _under_ncu(job, captured, own)
    kernels = tuple(one for one in ncu.parse(raw) if one.name in own)
    if not kernels:
        raise EnvironmentUnfit("ncu saw none of the plan's kernels: expected each of them once")
    longest = max(kernels, key=lambda one: one.duration_ns)
    return Counters(kernels=kernels, diagnosis=diagnose(longest), raw=raw)


def _under_ncu(job: Job, captured: Captured, own: set[str]) -> str:
    launcher = trusted_program(job, launcher_files(job, captured), binds=ncu.places())
    program = dataclasses.replace(launcher, wrapper=ncu.wrapper(own), warm=False, environment={})
    limits = dataclasses.replace(job.limits(job.policy.verify_limit_s, shadow=True), log_bytes=LOG_BYTES)
    stage = Stage(program, job.isolation)
    try:
        with loaded(job, stage, limits, LAUNCH, label="profile") as kernel:
            if isinstance(kernel, Failed):
                ncu.parse(kernel.log)  # raises with the reason if the tool itself failed
                raise EnvironmentUnfit(
                    f"the plan can't be launched under ncu: {kernel.reason.message}", hint="forge doctor"
                )
            called = kernel.call([kernel.case(job.shape)])
            if isinstance(called, Failed):
                raise EnvironmentUnfit(
                    f"the plan can't be launched under ncu: {called.reason.message}", hint="forge doctor"
                )
            _, log = kernel.finish()
            return log
    finally:
        stage.remove()


def read_machine_code(artifact: tuple[ArtifactFile, ...]) -> tuple[CodeFacts, ...]:
    """Return the facts about the candidate's cubins; raise EnvironmentUnfit if it has none."""
    cubins = [file.content for file in artifact if file.name.endswith(".cubin")]
    if not cubins:
        raise EnvironmentUnfit(
            "this candidate has no device code on record: expected cubins from a verification on a GPU",
            hint="forge verify RUN on a machine with the target GPU",
        )
    return tuple(facts for cubin in cubins for facts in machine_code.read_code(cubin))

"""Defines what the lab judges: a candidate's bytes, and the terms."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from forge.domain.candidate import Metadata
from forge.domain.contender import OwnContender
from forge.domain.device import Device
from forge.domain.evidence import Isolation
from forge.domain.kernel_domain import KernelDomain
from forge.domain.policy import MeasuredBaseline, Policy
from forge.domain.tensors import DType
from forge.lab.definitions import definition_of
from forge.lab.definitions.definition import Definition
from forge.lab.inputs.seeded import new_seed
from forge.lab.runner import Runner, runner_of
from forge.languages import Language
from forge.operations import baselines_of
from forge.operations.operation import Operation
from forge.sandbox.allowance import Allowance
from forge.sandbox.limits import Limits
from forge.sandbox.reply import ArtifactFile
from forge.sandbox.session import GuestFunction
from forge.sandbox.stage import INTERPRETS

Progress = Callable[[str], None]
THREADS_BESIDE_GPU = 8
"""Number of threads of a guest whose work a GPU does. Chosen; more threads would only slow each other down."""
GUEST_CPU_S = 7200
"""Processor seconds of every process (RLIMIT_CPU). A guest can read this limit, so it is the same for verifying and
timing. Chosen: two hours, since the host's own count ends guests earlier."""
WALL_PER_CPU_S = 16
"""Wall seconds that the host waits for a guest, for each processor second of one thread. Chosen; a thread that gets
less than a sixteenth of a processor counts as idle."""
SLOW_GATES_TIMES = 4
"""Factor on what all gates together may take if calls take long for another reason than the kernel. Chosen. It may be
compiled, or interpreted, when it is called: on an H200 a right softmax used up 120 s by compiling for each width. In
the interpreter a right attention kernel takes more than 200 s. And a guest that waits for a GPU keeps a processor
busy, while the GPU works for others. One answer has the usual limit, so a kernel that hangs ends as soon as
anywhere."""
WALL_PER_CANDIDATE_S = 4
"""Seconds that the host waits for all guests of a candidate, for each processor second that they have together.
Chosen; what ends by it has no verdict, so that it may be shorter than a guest's own."""
STILL_S = 30.0
"""Seconds without processor time after which a guest counts as idle. Chosen; imports from a cold disk pause for
less."""
MOST_COUNTED_THREADS = 8
"""Number of threads that may each use their processor seconds in full, at most. Chosen; a guest that hangs in all
threads ends after this many times its processor seconds."""


@dataclass(frozen=True, kw_only=True)
class Incumbent:
    """The kernel that the registry offers now: one more baseline."""

    files: Mapping[str, bytes]
    artifact: tuple[ArtifactFile, ...]
    """Files built from the sources; empty if they can't be loaded on this machine."""
    entry_point: str


@dataclass(frozen=True, kw_only=True)
class ContenderFile:
    """A file of the user that the task's candidates are measured against."""

    described: OwnContender
    source: bytes


def allowance_of(policy: Policy) -> Allowance | None:
    """Return what the guests of one candidate may take together in one job; None if the policy doesn't limit it."""
    limit_s = policy.candidate_limit_s
    return None if limit_s is None else Allowance(limit_s, wall_s=WALL_PER_CANDIDATE_S * limit_s)


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, kw_only=True)
class Job:
    """Everything that judging a candidate needs, and nothing that identifies a run."""

    operation: Operation
    language: Language
    shape: Mapping[str, int]
    held_out: tuple[Mapping[str, int], ...]
    dtype: DType
    policy: Policy
    isolation: Isolation
    files: Mapping[str, bytes]
    metadata: Metadata
    entry_point: str
    interpreted: bool = False
    """Whether an interpreter replaces the target, so that the result is simulated."""

    device: Literal["cpu", "cuda"] = "cpu"
    """Device on which the candidate runs."""
    gpu: Device | None = None
    """The GPU of the job, if it runs on one; its guests see no other."""
    arch: str = "host"
    """Architecture of the target, for compiled code: "sm_90"; "host" if the target is no GPU."""
    forbidding: bool = True
    """Whether a construct that the language forbids ends the examination at `sources`. Without it only walls and
    gates are tested, which shows what they stop by themselves. The ledger's verdicts are always made with it."""

    contender_files: tuple[ContenderFile, ...] = ()
    """Files of the user that are measured beside the candidate, besides the contenders of libraries."""
    allowance: Allowance | None = field(default=None, compare=False)
    """What all guests of the candidate may take together in this job; None if only each guest is limited."""
    seed: int = field(default_factory=new_seed)
    """Seed from which every question of a verification follows; it is recorded once a verdict stands."""

    @property
    def runner(self) -> Runner:
        """Runner of the candidate's calls: a processor, a GPU, or an interpreter in its place."""
        return runner_of(self.device, interpreted=self.interpreted)

    @property
    def domain(self) -> KernelDomain | None:
        """Domain that the candidate declares, with its limit on elements resolved; None if it declares none."""
        stated = self.metadata.domain
        return None if stated is None else stated.resolved((*self.operation.inputs, *self.operation.outputs))

    @property
    def baselines(self) -> tuple[MeasuredBaseline, ...]:
        """Baselines that the candidate is measured against, without the incumbent."""
        return baselines_of(self.operation, self.policy)

    @property
    def definition(self) -> Definition:
        """Definition of the operation: what a candidate may be asked, and how the reference is run."""
        return definition_of(self.operation)

    def candidate_function(self, entry_point: str | None = None) -> GuestFunction:
        """Return the candidate's function for a guest, or that of another kernel with this entry point."""
        return GuestFunction("kernel.py", entry_point or self.entry_point, wrap=self.definition.wrap)

    @property
    def threads(self) -> int:
        """Number of threads of a guest: one for each of its processors, or few if a GPU does the work."""
        return min(THREADS_BESIDE_GPU, processors()) if self.runner.leaves_host_idle else processors()

    def limits(self, cpu_s: float, *, shadow: bool = False) -> Limits:
        """Return what one guest of this job may use if one thread may work for `cpu_s` seconds."""
        return Limits(
            wall_s=WALL_PER_CPU_S * cpu_s,
            cpu_s=GUEST_CPU_S,
            thread_cpu_s=cpu_s,
            total_cpu_s=cpu_s * min(self.threads, MOST_COUNTED_THREADS),
            still_s=min(STILL_S, cpu_s),
            waits_for_device=self.device == "cuda",
            memory_bytes=self.policy.memory_limit_bytes,
            shadow=shadow,
        )

    @property
    def gate_limits(self) -> Limits:
        """Limits of a guest that gates ask: more if calls compile or wait for a GPU, but no more for one answer."""
        limits = self.limits(self.policy.verify_limit_s)
        if not (self.language.decorated or self.device == "cuda"):
            return limits
        together = self.limits(SLOW_GATES_TIMES * self.policy.verify_limit_s)
        return replace(together, reply_cpu_s=self.policy.verify_limit_s, still_s=limits.still_s)

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables that the language needs in the guest."""
        return {INTERPRETS: "1"} if self.interpreted else {}

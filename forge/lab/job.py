"""What the lab is asked to judge: a candidate's bytes, and the terms."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from forge.domain.candidate import Metadata
from forge.domain.device import Device
from forge.domain.evidence import Isolation
from forge.domain.policy import MeasuredBaseline, Policy
from forge.domain.tensors import DType
from forge.lab.inputs.seeded import new_seed
from forge.languages import Language
from forge.operations import baselines_of
from forge.operations.operation import Operation
from forge.sandbox.limits import Limits
from forge.sandbox.reply import ArtifactFile

Progress = Callable[[str], None]
BESIDE_A_GPU = 8
"""Threads of a guest whose work is done by a GPU: more would only get into each other's way."""
GUEST_CPU_S = 7200
"""Processor seconds of every guest: the same where a candidate is verified and where it is timed, for it can read it.
The wall time is the limit that counts."""


@dataclass(frozen=True, kw_only=True)
class Incumbent:
    """The kernel that the registry offers now: one more baseline."""

    files: Mapping[str, bytes]
    artifact: tuple[ArtifactFile, ...]
    """What was built from them; empty where that can't be loaded here."""
    entry_point: str


def processors() -> int:
    """How many processors this process may run on."""
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
    """Whether an interpreter stands in for the target: the result is simulated."""

    device: Literal["cpu", "cuda"] = "cpu"
    """Where the candidate runs."""
    gpu: Device | None = None
    """Which one, if that is a GPU: its guests see no other."""
    arch: str = "host"
    """The target's architecture, for what is compiled for it: "sm_90"; "host" where the target is no GPU."""
    forbidding: bool = True
    """Whether what the language forbids ends it at `sources`. Without it the walls and gates alone are asked, which
    says what they stop by themselves; what is judged for the ledger is always judged with it."""

    seed: int = field(default_factory=new_seed)
    """What every question of a verification follows from; on record once a verdict stands."""

    @property
    def baselines(self) -> tuple[MeasuredBaseline, ...]:
        """What the candidate is measured against, besides a rival."""
        return baselines_of(self.operation, self.policy)

    @property
    def wrap(self) -> Literal["none", "module"]:
        """How a candidate's entry point is called: as it is, or as what a reference file's contract describes."""
        return "none" if self.operation.own is None else "module"

    @property
    def threads(self) -> int:
        """Threads that a guest may compute with: one for each processor it may run on, few beside a GPU."""
        return processors() if self.device == "cpu" else min(BESIDE_A_GPU, processors())

    def limits(self, wall_s: float, *, shadow: bool = False) -> Limits:
        """What one guest of this job may use in `wall_s` seconds."""
        return Limits(wall_s=wall_s, cpu_s=GUEST_CPU_S, memory_bytes=self.policy.memory_limit_bytes, shadow=shadow)

    @property
    def environment(self) -> dict[str, str]:
        """Variables that the language needs in the guest."""
        return {"TRITON_INTERPRET": "1"} if self.interpreted else {}

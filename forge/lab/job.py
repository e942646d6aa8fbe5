"""What the lab is asked to judge: a candidate's bytes, and the terms."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from forge.domain.candidate import Metadata
from forge.domain.evidence import Isolation
from forge.domain.operation import Operation
from forge.domain.policy import Policy
from forge.domain.tensors import DType
from forge.languages import Language
from forge.sandbox.limits import Limits

Progress = Callable[[str], None]


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
    forbidding: bool = True
    """Whether what the language forbids ends it at `sources`. Without it the walls and gates alone are asked, which
    says what they stop by themselves; what is judged for the ledger is always judged with it."""

    @property
    def threads(self) -> int:
        """Threads that a guest may compute with: one for each processor it may run on."""
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    def limits(self, wall_s: float, *, shadow: bool = False) -> Limits:
        """What one guest of this job may use in `wall_s` seconds."""
        return Limits(
            wall_s=wall_s, cpu_s=int(wall_s * 16), memory_bytes=self.policy.memory_limit_bytes, shadow=shadow
        )

    @property
    def environment(self) -> dict[str, str]:
        """Variables that the language needs in the guest."""
        return {"TRITON_INTERPRET": "1"} if self.interpreted else {}

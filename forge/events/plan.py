"""Phase 2: which skills the author gets, and why."""

from typing import ClassVar, Literal

from pydantic import Field

from forge.domain.digest import Digest, Value
from forge.domain.evidence import Interval
from forge.domain.experiment import Ended
from forge.domain.verdict import ReasonCode
from forge.events.fact import Fact

ExperimentEnd = Literal[Ended, "promoted", "denied", "not_faster", "rejected"]
"""The last four stand in plans before version 3."""


class ChosenSkill(Value):
    """One playbook and the reason it was chosen."""

    id: str
    sha256: Digest
    provider: str
    why: str


class SkillLibrary(Value):
    """Where skills could come from."""

    provider: str
    state: Literal["read", "absent"]
    version: str | None
    sha256: Digest | None
    """Over the ids and digests of all its skills."""
    skills: int = Field(ge=0)


class EarlierExperiment(Value):
    """An earlier run for the same operation that came to an end on evidence."""

    run_id: str
    family: str
    ended: ExperimentEnd
    reason: ReasonCode | None
    """Why it wasn't promoted."""
    speedup: float | None = None
    """Over what it was held against, where it was measured."""
    hypothesis: str | None = None
    """In the author's words, on one line, cut short: untrusted."""
    low: float | None = None
    high: float | None = None
    """The speedup's 95 % interval. Since version 3, as are the rest."""
    against: str | None = None
    layer: str | None = None
    axis: str | None = None
    closed_seq: int | None = None
    """The event that closed it."""


class BestKernel(Value):
    """A kernel that the registry offers for what is asked."""

    kernel_id: str
    candidate: Digest
    language: str
    same_shape: bool
    """Whether it was measured at the very shape that is asked."""
    speedup: Interval
    baseline: str
    median_us: float = Field(gt=0)
    floor_fraction: float | None = None
    """Of the measured floor: 1 is as fast as the memory allows."""
    promoted_seq: int
    benchmark_seq: int


class Triage(Value):
    """What was known before a line was written."""

    implementation: str
    """The implementation class: what an author may change in it decides which playbook fits."""
    bytes_moved: int = Field(ge=0)
    """Least traffic of the public workload."""
    flops: int = Field(ge=0)
    intensity: float = Field(ge=0)
    """Flops per byte of least traffic."""
    ridge: float | None
    """Flops per byte above which arithmetic is the limit, from the processor's table; None where there is none."""
    floor_us: float | None
    """Least traffic over the table's bandwidth: for orientation, no kernel is judged by it."""
    earlier: tuple[EarlierExperiment, ...] = ()
    """The latest for this operation, those on this processor first, at any shape."""
    arithmetic_us: float | None = None
    """Flops over the table's peak rate. Since version 3, as are the rest."""
    rate_of: str | None = None
    """Of which type that rate is: the element's on the matrix units, or fp32 on the vector units."""
    best: BestKernel | None = None


class PlanAccepted(Fact):
    """The skills for a task were chosen."""

    TYPE: ClassVar[str] = "PlanAccepted"
    SCHEMA_VERSION: ClassVar[int] = 3
    task_id: str
    run_id: str
    skills: tuple[ChosenSkill, ...] = Field(min_length=1)
    queries: tuple[str, ...]
    bottleneck_prior: str
    """memory, compute or launch: where the floor of this operation at this shape lies."""
    earlier_experiments: int
    """Earlier runs of the same task."""
    triage: Triage | None = None
    """None in plans made before it was recorded."""
    libraries: tuple[SkillLibrary, ...] | None = None
    """Where skills were looked for; None in plans made before it was recorded."""

    def stream(self) -> str:
        """The task's stream."""
        return f"task:{self.task_id}"

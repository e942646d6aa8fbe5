"""The skills that the author gets, and why."""

from typing import Literal

from pydantic import Field

from forge.domain.axes import Ended
from forge.domain.digest import Digest, Value, is_false
from forge.domain.evidence import Interval
from forge.domain.verdict import ReasonCode
from forge.events.fact import Fact

ExperimentEnd = Literal[Ended, "promoted", "denied", "not_faster", "rejected"]
"""End of an experiment in a plan. Only plans before version 3 have the last four."""


class ChosenSkill(Value):
    """One playbook, and the reason why it was chosen."""

    id: str
    sha256: Digest
    provider: str
    why: str


class SkillLibrary(Value):
    """A library that skills can come from."""

    provider: str
    state: Literal["read", "absent"]
    version: str | None
    sha256: Digest | None
    """Digest over the ids and digests of all its skills."""
    skills: int = Field(ge=0)


class EarlierExperiment(Value):
    """An earlier run for the same operation that was decided by evidence."""

    run_id: str
    family: str
    ended: ExperimentEnd
    reason: ReasonCode | None
    """Reason why it wasn't promoted."""
    speedup: float | None = None
    """Speedup over `against`. None: not measured."""
    hypothesis: str | None = None
    """Hypothesis in the author's words, shortened to one line: untrusted."""
    low: float | None = None
    high: float | None = None
    """Upper end of the speedup's 95 % interval; `low` is the lower end. Since version 3, like the fields below."""
    against: str | None = None
    layer: str | None = None
    axis: str | None = None
    closed_seq: int | None = None
    """Sequence number of the event that closed it."""
    simulated: bool = Field(default=False, exclude_if=is_false)
    """Whether an interpreter stood in for the target. False is left out of the stored form, as before this field."""


class BestKernel(Value):
    """The best kernel that the registry offers for the task."""

    kernel_id: str
    candidate: Digest
    language: str
    same_shape: bool
    """True if it was measured at exactly the task's shape."""
    speedup: Interval
    baseline: str
    median_us: float = Field(gt=0)
    floor_fraction: float | None = None
    """Measured floor divided by its time: 1 is as fast as the memory allows."""
    promoted_seq: int
    benchmark_seq: int


class Triage(Value):
    """The facts that were known before a kernel was written."""

    implementation: str
    """Implementation class. It decides which changes an author can make, and so which playbook fits."""
    bytes_moved: int = Field(ge=0)
    """Least traffic of the public workload, in bytes."""
    flops: int = Field(ge=0)
    intensity: float = Field(ge=0)
    """Arithmetic intensity: flops per byte of least traffic."""
    ridge: float | None
    """Ridge point: flops per byte above which arithmetic is the limit, from vendor figures. None: no figures."""
    floor_us: float | None
    """Least traffic divided by the vendor's bandwidth. It is for orientation; no kernel is judged by it."""
    earlier: tuple[EarlierExperiment, ...] = ()
    """Latest experiments on this operation at any shape, those on this processor first."""
    arithmetic_us: float | None = None
    """Flops divided by the vendor's peak rate. Since version 3, like the fields below."""
    rate_of: str | None = None
    """Type of that rate: the element type on the matrix units, or fp32 on the vector units."""
    best: BestKernel | None = None


class PlanAccepted(Fact):
    """The skills for a task were chosen."""

    task_id: str
    run_id: str
    skills: tuple[ChosenSkill, ...] = Field(min_length=1)
    queries: tuple[str, ...]
    bottleneck_prior: str
    """Expected bottleneck at this shape: memory, compute or launch."""
    earlier_experiments: int
    """Number of earlier runs of the same task."""
    triage: Triage | None = None
    """Facts known before writing. None in plans that were made before this was recorded."""
    libraries: tuple[SkillLibrary, ...] | None = None
    """Libraries that were searched. None in plans that were made before this was recorded."""

"""Phase 2: which skills the author gets, and why."""

from typing import ClassVar, Literal

from pydantic import Field

from forge.domain.digest import Digest, Value
from forge.domain.verdict import ReasonCode
from forge.events.fact import Fact

ExperimentEnd = Literal["promoted", "denied", "not_faster", "rejected"]


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
    """Over the baseline that counted, where it was measured."""
    hypothesis: str | None = None
    """In the author's words, on one line, cut short: untrusted."""


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
    """The latest, newest first, for this operation on any processor and at any shape."""


class PlanAccepted(Fact):
    """The skills for a task were chosen."""

    TYPE: ClassVar[str] = "PlanAccepted"
    SCHEMA_VERSION: ClassVar[int] = 2
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

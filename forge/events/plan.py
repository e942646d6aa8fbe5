"""Phase 2: which skills the author gets, and why."""

from typing import ClassVar

from pydantic import Field

from forge.domain.digest import Digest, Value
from forge.events.fact import Fact


class ChosenSkill(Value):
    """One playbook and the reason it was chosen."""

    id: str
    sha256: Digest
    provider: str
    why: str


class PlanAccepted(Fact):
    """The skills for a task were chosen."""

    TYPE: ClassVar[str] = "PlanAccepted"
    task_id: str
    run_id: str
    skills: tuple[ChosenSkill, ...] = Field(min_length=1)
    queries: tuple[str, ...]
    bottleneck_prior: str
    """memory, compute or launch: where the floor of this operation at this shape lies."""
    earlier_experiments: int

    def stream(self) -> str:
        """The task's stream."""
        return f"task:{self.task_id}"

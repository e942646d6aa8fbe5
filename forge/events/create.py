"""Phase 1: what is wanted."""

from typing import ClassVar

from forge.domain.evidence import Admission
from forge.domain.task import Task
from forge.events.fact import Fact


class TaskCreated(Fact):
    """A task was frozen."""

    TYPE: ClassVar[str] = "TaskCreated"
    SCHEMA_VERSION: ClassVar[int] = 2
    task_id: str
    task: Task
    admission: Admission | None = None
    """How its own inputs and bound did against known wrong answers; none where the lab wasn't installed, and before
    version 2."""

    def stream(self) -> str:
        """The task's stream."""
        return f"task:{self.task_id}"

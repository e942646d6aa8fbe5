"""Phase 1: what is wanted."""

from typing import ClassVar

from forge.domain.evidence import Admission
from forge.domain.task import Task
from forge.events.fact import Fact, Group


class TaskCreated(Fact):
    """A task was frozen."""

    TYPE: ClassVar[str] = "TaskCreated"
    GROUP: ClassVar[Group] = "handed_in"
    SCHEMA_VERSION: ClassVar[int] = 2
    task_id: str
    task: Task
    admission: Admission | None = None
    """Score of the task's inputs and bound on known wrong answers. None: the lab wasn't installed, or the event is of
    version 1."""

    def stream(self) -> str:
        """Return the task's stream."""
        return f"task:{self.task_id}"

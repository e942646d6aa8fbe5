"""Phase 1: what is wanted."""

from typing import ClassVar

from forge.domain.task import Task
from forge.events.fact import Fact


class TaskCreated(Fact):
    """A task was frozen."""

    TYPE: ClassVar[str] = "TaskCreated"
    task_id: str
    task: Task

    def stream(self) -> str:
        """The task's stream."""
        return f"task:{self.task_id}"

"""What is wanted."""

from forge.domain.evidence import Admission
from forge.domain.task import Task
from forge.events.fact import Fact


class TaskCreated(Fact):
    """A task was frozen."""

    task_id: str
    task: Task
    admission: Admission | None = None
    """Score of the task's inputs and bound on known wrong answers. None: the lab wasn't installed, or the event is of
    version 1."""

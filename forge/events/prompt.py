"""Phase 3: the brief as it was rendered."""

from typing import ClassVar

from forge.domain.digest import Digest
from forge.events.fact import Fact


class PromptRendered(Fact):
    """A brief was rendered for a run."""

    TYPE: ClassVar[str] = "PromptRendered"
    task_id: str
    run_id: str
    template: str
    template_version: int
    template_sha256: Digest
    variables_sha256: Digest
    rendered_sha256: Digest

    def stream(self) -> str:
        """The task's stream."""
        return f"task:{self.task_id}"

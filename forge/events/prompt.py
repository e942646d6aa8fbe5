"""Phase 3: the brief as it was rendered."""

from typing import ClassVar

from forge.domain.digest import Digest
from forge.events.fact import Fact


class PromptRendered(Fact):
    """A brief was rendered for a run."""

    TYPE: ClassVar[str] = "PromptRendered"
    SCHEMA_VERSION: ClassVar[int] = 2
    task_id: str
    run_id: str
    template: str
    template_version: int
    template_sha256: Digest
    variables_sha256: Digest
    rendered_sha256: Digest
    budget_tokens: int | None = None
    """What it had to fit into. Since version 2, as are the two below."""
    tokens: int | None = None
    """An upper estimate of its length."""
    left_out: tuple[str, ...] = ()
    """What didn't fit, in the order in which it was dropped."""

    def stream(self) -> str:
        """The task's stream."""
        return f"task:{self.task_id}"

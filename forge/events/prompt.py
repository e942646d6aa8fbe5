"""The rendered brief."""

from forge.domain.digest import Digest
from forge.events.fact import Fact


class PromptRendered(Fact):
    """A brief was rendered for a run."""

    task_id: str
    run_id: str
    template: str
    template_version: int
    template_sha256: Digest
    variables_sha256: Digest
    rendered_sha256: Digest
    budget_tokens: int | None = None
    """Largest number of tokens that it could have. Since version 2, like the two fields below."""
    tokens: int | None = None
    """Estimated length in tokens."""
    left_out: tuple[str, ...] = ()
    """Parts that didn't fit, in the order in which they were dropped."""

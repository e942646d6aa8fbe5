"""Lets the chosen author work on a task of a module, with an equal share of the budget."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from forge.app.sessions.choice import AuthorChoice, answering, prices_for, require_means, source_of
from forge.app.sessions.coding_agent import CodingAgent
from forge.app.sessions.opening import Means, SessionRequest, open_session, work_off
from forge.app.workspace import Workspace
from forge.authors.kinds import make_author
from forge.authors.model.prompt import PROMPTS_SHA256
from forge.domain.budget import Amounts
from forge.domain.digest import Digest, digest_of
from forge.errors import UsageError
from forge.lab.job import Progress
from forge.projections.sessions import SessionState

WORKS_FOR_MANY = ("model", "command")
"""Authors that can work on any task. A search needs a template of its task, and a person can't be waited for."""


@dataclass(frozen=True, kw_only=True)
class SharedWork:
    """A chosen author, and the budget of all of its sessions together."""

    workspace: Workspace
    choice: AuthorChoice
    request: SessionRequest
    key_file: Path | None
    progress: Progress

    def __post_init__(self) -> None:
        if self.choice.kind not in WORKS_FOR_MANY:
            expected = " or ".join(WORKS_FOR_MANY)
            raise UsageError(f"author {self.choice.kind!r} can't work on parts of a module: expected {expected}")
        require_means(self.workspace, self.choice, self.key_file)

    @property
    def identity(self) -> Digest:
        """Digest of the author, its options and the prompts that Forge writes for it."""
        made_of = {name: value for name, value in asdict(self.choice).items() if name not in ("template", "profile")}
        return digest_of({**made_of, "prompts": PROMPTS_SHA256 if self.choice.kind == "model" else None})

    def __call__(self, task_id: str, shares: int) -> SessionState:
        """Let the author work on a task until its session is closed. Each call has a connection of its own."""
        with Workspace.open(self.workspace.home, acts_as=self.workspace.acts_as) as workspace:
            source = source_of(workspace, task_id, self.choice)
            author, asked = make_author(source), answering(workspace, source, self.key_file)
            request = replace(
                self.request,
                task=task_id,
                budget=_share(self.request.budget, shares),
                prices=prices_for(source, self.request.prices),
            )
            session_id = open_session(workspace, author, request, source=source)
            try:
                return work_off(workspace, session_id, author, Means(progress=self.progress, model=asked))
            finally:
                if isinstance(asked, CodingAgent):
                    asked.close()


def _share(budget: Amounts, shares: int) -> Amounts:
    return Amounts(**{name: amount // shares for name, amount in budget.items()})

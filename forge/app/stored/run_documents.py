"""A run as documents: what answers about one run read of it, without models."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forge.app.stored.as_document import plain
from forge.app.stored.run_summary import run_summary
from forge.ledger.plain_rows import PlainEvent

if TYPE_CHECKING:
    from forge.projections.runs import RunState

OF_A_SUBMISSION = (
    *("CandidateVerified", "CandidateRejected", "BenchmarkRecorded", "BenchmarkFailed"),
    *("KernelPromoted", "PromotionDenied"),
)
"""Types of events that are about one submission: a new submission in the same run clears them."""
OF_A_RUN = ("PlanAccepted", "PromptRendered", "CandidateSubmitted", *OF_A_SUBMISSION, "RunSealed", "RunAborted")
"""Types of a run's events from which its document is made."""
JUDGEMENTS = ("CandidateVerified", "CandidateRejected", "BenchmarkRecorded", "BenchmarkFailed")
"""Types of events that name a report of a run's candidate."""


@dataclass(frozen=True, slots=True)
class RunDocuments:
    """One run: its task, and its newest event of each type that counts for the last submission."""

    summary: Mapping[str, object]
    """What `forge run show` says of it."""
    task: PlainEvent | None
    newest: Mapping[str, PlainEvent]
    """Event type -> the newest event."""

    @property
    def run_id(self) -> str:
        """The run's id."""
        return str(self.summary["run_id"])

    @property
    def task_id(self) -> str:
        """The id of its task."""
        return str(self.summary["task_id"])

    @property
    def state(self) -> str:
        """The stage in which it is."""
        return str(self.summary["state"])

    def get(self, *types: str) -> PlainEvent | None:
        """Return the newest event of some types; None without one."""
        found = [self.newest[name] for name in types if name in self.newest]
        return max(found, key=lambda one: one.seq, default=None)

    @property
    def submitted(self) -> PlainEvent | None:
        """The last submission."""
        return self.get("CandidateSubmitted")

    @property
    def timing(self) -> PlainEvent | None:
        """The newest benchmark, with a verdict or without one."""
        return self.get("BenchmarkRecorded", "BenchmarkFailed")


def newest_of(events: Iterable[PlainEvent]) -> dict[str, PlainEvent]:
    """Return the newest event of each type that counts for the last submission, from a run's events in order."""
    newest: dict[str, PlainEvent] = {}
    for one in events:
        if one.type == "CandidateSubmitted":
            newest = {name: kept for name, kept in newest.items() if name not in OF_A_SUBMISSION}
        newest[one.type] = one
    return newest


def of_state(run: "RunState") -> RunDocuments:
    """Return a run that was folded from models as documents."""
    kept = (run.plan, run.prompt, run.submitted, run.verified, run.rejection, run.benchmark, run.failure)
    newest = [plain(one) for one in (*kept, run.promotion, run.end) if one is not None]
    task = None if run.task is None else plain(run.task)
    return RunDocuments(run_summary(run), task, {one.type: one for one in newest})

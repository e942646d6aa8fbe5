"""The flywheel: how an experiment ended, and what was learned from several."""

from typing import ClassVar

from pydantic import Field

from forge.domain.digest import Digest
from forge.domain.experiment import Conclusion, Ended
from forge.events.fact import Fact


class ExperimentClosed(Fact):
    """A candidate was judged; what its change was held against, and what became of it."""

    TYPE: ClassVar[str] = "ExperimentClosed"
    run_id: str
    task_id: str
    candidate: Digest
    parent: Digest | None
    """The candidate it came from, where it was held against that one."""
    layer: str | None
    axis: str | None
    """As the author declared them."""
    conclusion: Conclusion
    decided_seq: int = Field(ge=1)
    """The refusal or the benchmark that decided."""

    def stream(self) -> str:
        """The candidate's stream."""
        return f"candidate:{self.candidate}"


class LessonProposed(Fact):
    """Somebody draws a conclusion from closed experiments, for a playbook."""

    TYPE: ClassVar[str] = "LessonProposed"
    lesson_id: str
    op: str
    playbook: str
    """The skill that it would amend."""
    ended: Ended
    """What the lesson says comes of it; every experiment it rests on ended so."""
    text: str
    """In the proposer's words: untrusted."""
    experiment_seqs: tuple[int, ...] = Field(min_length=1)
    """The ExperimentClosed events it rests on."""

    def stream(self) -> str:
        """The lesson's stream."""
        return f"lesson:{self.lesson_id}"


class LessonAccepted(Fact):
    """A person took a lesson into its playbook."""

    TYPE: ClassVar[str] = "LessonAccepted"
    lesson_id: str
    by: str
    playbook: str
    before_sha256: Digest
    """The playbook's version until then."""
    after_sha256: Digest
    """The amended one, which is stored by content."""

    def stream(self) -> str:
        """The lesson's stream."""
        return f"lesson:{self.lesson_id}"

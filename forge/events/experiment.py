"""Experiments that ended, and the lessons that were drawn from them."""

from pydantic import Field

from forge.domain.axes import Ended
from forge.domain.digest import Digest
from forge.domain.experiment import Conclusion
from forge.events.fact import Fact


class ExperimentClosed(Fact):
    """A candidate was judged, and its change was compared with its parent, the incumbent or a baseline."""

    run_id: str
    task_id: str
    candidate: Digest
    parent: Digest | None
    """Candidate that it came from, if the comparison is with that one."""
    layer: str | None
    axis: str | None
    """Axis that the author declared; `layer` is declared too."""
    conclusion: Conclusion
    decided_seq: int = Field(ge=1)
    """Sequence number of the refusal or the benchmark that decided."""


class LessonProposed(Fact):
    """A person or an agent proposed a lesson for a playbook, drawn from closed experiments."""

    lesson_id: str
    op: str
    playbook: str
    """Id of the skill that the lesson would amend."""
    ended: Ended
    """End that the lesson predicts. Every experiment that it rests on ended so."""
    text: str
    """Lesson in the proposer's words: untrusted."""
    experiment_seqs: tuple[int, ...] = Field(min_length=1)
    """Sequence numbers of the ExperimentClosed events that it rests on."""


class LessonAccepted(Fact):
    """A person accepted a lesson into its playbook."""

    lesson_id: str
    by: str
    playbook: str
    before_sha256: Digest
    """Digest of the playbook before."""
    after_sha256: Digest
    """Digest of the amended playbook, whose bytes are stored."""

"""An author that proposes the steps of a list, and counts how often it was asked."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from forge.domain.authoring import BudgetLeft, Draft, Finished, Judged, LogEntry, Step, Submit
from forge.domain.candidate_files import REQUIRED_FILES
from forge.domain.digest import Digest, digest_of
from tests.cli.asking import HONEST

DONE = Finished(reason="nothing_left", detail="the list has ended")


@dataclass
class Scripted:
    """Proposes one step after the other; which one follows from the log alone."""

    steps: Sequence[Step]
    name: str = "scripted"
    seen: list[tuple[LogEntry, ...]] = field(default_factory=list)

    @property
    def identity(self) -> Digest:
        return digest_of({"steps": [one.model_dump(mode="json") for one in self.steps]})

    def propose(self, seed: int, log: Sequence[LogEntry], left: BudgetLeft) -> Step:
        """Return the step that follows the log's entries."""
        del seed, left  # the list alone decides
        self.seen.append(tuple(log))
        rest = list(log)
        for step in self.steps:
            wanted = len(step.drafts) if isinstance(step, Submit) else 1
            learned = rest[:wanted]
            if isinstance(step, Submit) and step.first_right:
                right = [
                    place for place, one in enumerate(learned, 1) if isinstance(one, Judged) and one.passed_gates
                ]
                wanted = right[0] if right else wanted
            if len(rest) < wanted:
                return step
            rest = rest[wanted:]
        return DONE


def draft(*changed: tuple[str, str], folder: Path = HONEST) -> Draft:
    """Return a folder's files as a draft; in `kernel.py`, the first text of each pair is replaced by the second."""
    files = {name: (folder / name).read_text() for name in REQUIRED_FILES}
    for old, new in changed:
        assert old in files["kernel.py"], old
        files["kernel.py"] = files["kernel.py"].replace(old, new)
    return Draft(files=files, hypothesis=f"{len(changed)} changes")

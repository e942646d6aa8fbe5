"""The author of a list: submits each of some candidate folders once, in order."""

from collections.abc import Sequence
from dataclasses import dataclass

from forge.domain.authoring import BudgetLeft, Draft, Finished, Judged, LogEntry, Step, Submit
from forge.domain.digest import Digest, digest_of


@dataclass(frozen=True)
class FolderAuthor:
    """Hands in drafts that are there already, one in each round."""

    drafts: tuple[Draft, ...]

    @property
    def name(self) -> str:
        """Name of this kind of author."""
        return "folders"

    @property
    def identity(self) -> Digest:
        """Digest of the drafts in their order."""
        return digest_of([one.sha256 for one in self.drafts])

    def propose(self, seed: int, log: Sequence[LogEntry], left: BudgetLeft) -> Step:
        """Return the next draft; neither seed nor budget changes the order."""
        del seed, left
        judged = sum(isinstance(one, Judged) for one in log)
        if judged < len(self.drafts):
            return Submit(drafts=(self.drafts[judged],))
        return Finished(reason="nothing_left", detail=f"all {len(self.drafts)} drafts are judged")

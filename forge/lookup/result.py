"""What a lookup answers, and why each other kernel was passed over."""

from forge.lookup.answer import Evidence, Kernel
from forge.lookup.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, Protocol

    from forge.lookup.choice import Choice
    from forge.lookup.offer import Offer
    from forge.lookup.question import Question

    Match = Literal["exact", "covered", "nearest", "family", "none"]

    class Published(Protocol):
        """The kernels of one snapshot, as an answer needs them."""

        sha256: str

        def choice_for(self, question: Question) -> Choice:
            """The kernels that may answer."""

        def offers_of(self, op: str) -> list[Offer]:
            """Every kernel of an operation."""


class Result(Frozen):
    """An answer: `match`, and unless it is none a `kernel` with its `evidence`, from one `generation`."""

    __slots__ = ("_asked", "_question", "evidence", "generation", "kernel", "match")

    generation: str
    match: "Match"
    kernel: Kernel | None
    evidence: Evidence | None
    _question: "Question"
    _asked: "Published"

    def __init__(self, question: "Question", generation: "Published") -> None:
        found = generation.choice_for(question).find(question)
        put = object.__setattr__
        put(self, "generation", generation.sha256)
        put(self, "_question", question)
        put(self, "_asked", generation)
        put(self, "match", "none" if found is None else found[0])
        put(self, "kernel", None if found is None else found[2].kernel)
        put(self, "evidence", None if found is None else found[3].evidence.at(found[1]))

    @property
    def rejected(self) -> list[tuple[str, str]]:
        """(kernel_id, reason) of every other kernel of the operation, by kernel_id."""
        chosen = self.kernel.kernel_id if self.kernel else None
        found = []
        for offer in self._asked.offers_of(self._question.op):
            if offer.kernel.kernel_id != chosen:
                judged = self._question.judge(offer)
                reason = judged if isinstance(judged, str) else f"{chosen} is the better match"
                found.append((offer.kernel.kernel_id, reason))
        return sorted(found)

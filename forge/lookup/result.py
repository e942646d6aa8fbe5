"""What a lookup answers, and why each other kernel was passed over."""

from forge.lookup.answer import Evidence, Kernel
from forge.lookup.frozen import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from forge.lookup.choice import Choice
    from forge.lookup.offer import Offer
    from forge.lookup.question import Question

    Match = Literal["exact", "covered", "between", "nearest", "family", "none"]


class Result(Frozen):
    """An answer: `match`, and unless it is none a `kernel` with its `evidence`, from one `generation`."""

    __slots__ = ("_offer", "_offers_of", "_question", "evidence", "generation", "kernel", "match")

    generation: str
    match: "Match"
    kernel: Kernel | None
    evidence: Evidence | None
    _question: "Question"
    _offers_of: "Callable[[str], list[Offer]]"
    _offer: "Offer | None"

    def __init__(
        self, question: "Question", choice: "Choice", generation: str, offers_of: "Callable[[str], list[Offer]]"
    ) -> None:
        found = choice.find(question)
        put = object.__setattr__
        put(self, "generation", generation)
        put(self, "_question", question)
        put(self, "_offers_of", offers_of)
        put(self, "_offer", None if found is None else found[2])
        put(self, "match", "none" if found is None else found[0])
        put(self, "kernel", None if found is None else found[2].kernel)
        put(self, "evidence", None if found is None else found[3].evidence.at(found[1]))

    @property
    def neighbours(self) -> tuple[Evidence, ...]:
        """The evidence at the nearest proven shapes on both sides, if the asked one lies between; else none."""
        if self._offer is None or self._question.sizes in self._offer.domains[self._question.axes].verified:
            return ()
        return tuple(
            point.evidence.at(self._question.distance(point)) for point in self._question.bracket(self._offer) or ()
        )

    @property
    def reason(self) -> str:
        """Why the kernel answers at the asked shape; or that none does."""
        match self.match:
            case "none" if not self._offers_of(self._question.op):
                return f"the registry has no kernel of the operation {self._question.op!r}"
            case "none":
                return "no kernel answers; `rejected` has the reason against each"
            case "exact":
                return "verified and measured at this shape"
            case "covered":
                return "verified at this shape, and measured at another"
            case "family":
                return "verified and measured on another GPU of the architecture"
            case "between":
                below, above = (_said(one) for one in self.neighbours)
                return f"not verified at this shape itself, which lies between two that are proven: {below}; {above}"
            case "nearest":
                return "not verified at this shape itself, which lies between verified ones"

    @property
    def rejected(self) -> list[tuple[str, str]]:
        """(kernel_id, reason) of every other kernel of the operation, by kernel_id."""
        chosen = self.kernel.kernel_id if self.kernel else None
        found = []
        for offer in self._offers_of(self._question.op):
            if offer.kernel.kernel_id != chosen:
                judged = self._question.judge(offer)
                reason = judged if isinstance(judged, str) else f"{chosen} is the better match"
                found.append((offer.kernel.kernel_id, reason))
        return sorted(found)


def _said(evidence: Evidence) -> str:
    """Return a measured point in words: its sizes, and the speedup with its interval."""
    sizes = ",".join(f"{axis}={size}" for axis, size in evidence.shape.items())
    interval = f"{evidence.low:.3f} to {evidence.high:.3f}"
    return f"{sizes} at {evidence.speedup:.3f}x ({interval}) over {evidence.baseline}"

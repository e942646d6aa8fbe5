"""The feedback on one candidate, and the document that tells it: the same for every kind of author.

It never names a held-out shape. Of the oracle's answers it has those of the one counterexample, and no others.
"""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from forge.domain.digest import Digest, Value
from forge.domain.evidence import Interval
from forge.domain.profile import Bottleneck
from forge.domain.tensors import Shape
from forge.domain.verdict import Reason

SCHEMA_NAME: Literal["forge.feedback.v1"] = "forge.feedback.v1"
"""Name of this version of the document."""
DOCUMENT_BYTES = 8192
"""Size of a document in bytes, at most: a model's prompt has room for it many times."""
Text = Annotated[str, StringConstraints(max_length=2000)]
Line = Annotated[str, StringConstraints(max_length=400)]


class ShownCounterexample(Value):
    """The smallest failing case that was found, as its author may see it."""

    shape: Shape
    inputs: Line
    """Kind of input values: how they were drawn, or how shrinking made them."""
    output: Line
    index: tuple[int, ...]
    expected: Line
    got: Line
    allowed_error: Line
    wrong_elements: Line | None = None
    """Which elements of the output are wrong, such as all beyond a column. None: it isn't known."""
    snippet: Annotated[str, StringConstraints(max_length=4000)] | None = None
    """Python program that makes the failing call again. None: it is too long to show."""


class ShownTiming(Value):
    """The candidate's time beside the baseline that it must beat."""

    baseline: Line
    ratio: Interval
    """Ratio of the baseline's time to the candidate's."""
    median_us: Annotated[float, Field(gt=0)]
    floor_share: Annotated[float, Field(gt=0)]
    """Shortest possible time on this machine divided by the candidate's time."""


class Metric(Value):
    """One measured number, with the name under which a diagnosis cites it."""

    id: Annotated[str, StringConstraints(pattern=r"^[a-z0-9_.]{1,80}$")]
    value: float
    unit: Line


class ShownDiagnosis(Value):
    """What limits a right kernel, the numbers that show it, and the one thing to try next."""

    bottleneck: Bottleneck | None
    """Resource that limits the kernel, such as memory bandwidth. None: the profiler's numbers don't show which
    one."""
    metrics: Annotated[tuple[Metric, ...], Field(max_length=16)]
    recommendation: Text


class Feedback(Value):
    """Everything that an author learns about one judged draft besides its verdict."""

    gate: Line | None = None
    """Gate that refused it. None: no gate did."""
    simulated: bool = False
    """Whether an interpreter stood in for the target."""
    counterexample: ShownCounterexample | None = None
    build_log: Annotated[tuple[Line, ...], Field(max_length=40)] = ()
    """Last lines that the compiler, Python or the author's tests said. They are the candidate's words."""
    timing: ShownTiming | None = None


class EarlierAttempt(Value):
    """One earlier attempt of the session."""

    draft: Digest
    hypothesis: Annotated[str, StringConstraints(max_length=300)]
    outcome: Line


class FeedbackDocument(Value):
    """The document that every author gets after an attempt: a model in its prompt, others as a file."""

    format: Literal["forge.feedback.v1"] = SCHEMA_NAME
    verdict: Literal["none", "accepted", "rejected", "inconclusive"]
    """Verdict about the last candidate. `none`: nothing was judged yet, or the last answer had no candidate in it."""
    reason: Reason | None = None
    note: Text | None = None
    """Why the last answer had no candidate that could be judged."""
    gate: Line | None = None
    simulated: bool = False
    counterexample: ShownCounterexample | None = None
    build_log: tuple[Line, ...] = ()
    timing: ShownTiming | None = None
    diagnosis: ShownDiagnosis | None = None
    tried: tuple[EarlierAttempt, ...] = ()
    """Earlier attempts, the newest last. A refuted hypothesis isn't judged again."""
    left_out: Annotated[int, Field(ge=0)] = 0
    """Number of earlier attempts that this document has no room for."""
    budget_left: dict[str, float | int | None] = Field(default_factory=dict)


def fitted(document: FeedbackDocument, *, most_bytes: int = DOCUMENT_BYTES) -> FeedbackDocument:
    """Return the document with as much left out as needed: old attempts first, then log lines, then the snippet."""
    while _size(document) > most_bytes:
        if len(document.tried) > 1:
            shorter = {"tried": document.tried[1:], "left_out": document.left_out + 1}
        elif document.build_log:
            shorter = {"build_log": document.build_log[1:]}
        elif document.counterexample is not None and document.counterexample.snippet is not None:
            shorter = {"counterexample": document.counterexample.model_copy(update={"snippet": None})}
        elif document.reason is not None and len(document.reason.message) > 2 * len("..."):
            message = document.reason.message[: len(document.reason.message) // 2].removesuffix("...") + "..."
            shorter = {"reason": document.reason.model_copy(update={"message": message})}
        else:
            left_out = document.left_out + len(document.tried)
            shorter = {"tried": (), "left_out": left_out, "note": None, "counterexample": None, "diagnosis": None}
        document = document.model_copy(update=shorter)
    return document


def _size(document: FeedbackDocument) -> int:
    return len(document.model_dump_json().encode())

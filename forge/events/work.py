"""Work on request: an author asks that a run's phases be run, and any worker may do so."""

from typing import ClassVar, Literal

from forge.events.fact import Fact, Group

LastPhase = Literal["verify", "bench", "promote"]
"""Phase up to which a worker runs the phases of a run."""


class WorkRequested(Fact):
    """A run's candidate waits for a worker, which runs its phases up to `until`.

    The actor who writes the event is the one who asks. A worker answers a request once: a fault of the machine or a
    benchmark without a decision ends the request, and another attempt needs another request.
    """

    TYPE: ClassVar[str] = "WorkRequested"
    GROUP: ClassVar[Group] = "handed_in"
    run_id: str
    candidate: str
    until: LastPhase

    def stream(self) -> str:
        """Return the run's stream."""
        return f"run:{self.run_id}"


class WorkWithdrawn(Fact):
    """The request for a run's work no longer stands. What a worker has begun, it finishes."""

    TYPE: ClassVar[str] = "WorkWithdrawn"
    GROUP: ClassVar[Group] = "handed_in"
    run_id: str
    reason: str

    def stream(self) -> str:
        """Return the run's stream."""
        return f"run:{self.run_id}"

"""Work on request: an author asks that a run's phases be run, and any worker may do so."""

from typing import Annotated, Literal

from pydantic import StringConstraints

from forge.events.fact import Fact

LastPhase = Literal["verify", "bench", "promote"]
"""Phase up to which a worker runs the phases of a run."""


Asked = Literal["work", "worker", "session", "call"]
"""What was asked for: a run's phases, a worker on a device, or a session with an author.

A `call` over HTTP or MCP asked for what its caller has no right to.
"""


class WorkRequested(Fact):
    """A run's candidate waits for a worker, which runs its phases up to `until`.

    The actor who writes the event is the one who asks. A worker answers a request once. A fault of the machine or a
    benchmark without a decision ends it, and another attempt needs another request.
    """

    run_id: str
    candidate: str
    until: LastPhase


class WorkWithdrawn(Fact):
    """The request for a run's work no longer stands. What a worker has begun, it finishes."""

    run_id: str
    reason: str


class WorkRefused(Fact):
    """A person or a program asked for work that can't be done as it was asked for; nothing else was recorded."""

    asked: Asked
    subject: Annotated[str, StringConstraints(max_length=200)]
    """Run, device, author or caller that was named; characters that can't be printed are replaced."""
    code: Annotated[str, StringConstraints(pattern=r"^[A-Z_]{1,60}$")]
    """Code of the error, as in docs/errors.md."""
    detail: Annotated[str, StringConstraints(min_length=1, max_length=1000)]
    """The error's message."""

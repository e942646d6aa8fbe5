"""Checks that a promotion stands on a judgement: every gate passed, and a judgement that was reused is the same."""

from collections.abc import Iterator

from forge.events import EnvironmentCaptured, Event, Recorded
from forge.events.verify import CandidateVerified
from forge.projections.fold import Source, holds
from forge.projections.kernel import PromotedKernel


def why_no_judgement(kernel: PromotedKernel, machine: Recorded[Event] | None, source: Source) -> Iterator[str]:
    """Yield what the promotion names that judges nothing; `machine` is the event of the verification's machine."""
    promotion, verified = kernel.promoted.event, kernel.verified.event
    if verified.simulated:
        yield "a simulated verification, which can't be promoted"
    for named, gates in (("its own", promotion.gates), (f"event {kernel.verified.seq}'s", verified.gates)):
        failed = [gate.name for gate in gates if gate.verdict == "failed"]
        if failed:
            yield f"{named} gate {failed[0]!r}, which failed"
    if all(gate.verdict != "passed" for gate in verified.gates):
        yield f"event {kernel.verified.seq}, in which no gate passed"
    if not holds(machine, EnvironmentCaptured) or machine.seq > kernel.verified.seq:
        yield f"a verification on machine {verified.env_sha256!r}, which isn't in the ledger before it"
    yield from _another_reused(kernel.verified, source)


def _another_reused(verified: Recorded[CandidateVerified], source: Source) -> Iterator[str]:
    """Yield a complaint unless a reused judgement repeats an earlier one of the same bytes word for word."""
    event, seq = verified.event, verified.event.reused_seq
    if seq is None:
        return
    earlier = source.event_at(seq) if 0 < seq < verified.seq else None
    own = {"run_id": event.run_id, "attempt": event.attempt, "reused_seq": seq}
    if not holds(earlier, CandidateVerified) or earlier.event.reused_seq is not None:
        yield f"event {verified.seq}, which reuses event {seq}: that is no judgement of its own before it"
    elif earlier.event.model_copy(update=own) != event:
        yield f"event {verified.seq}, which reuses event {seq} and says something else"

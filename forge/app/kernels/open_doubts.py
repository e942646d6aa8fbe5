"""Answers which doubts about kernels aren't answered yet. It imports no model of an event, so that it stays quick.

A doubt decides nothing. It is answered by a later verification of the same candidate, by a person's word, or by the
kernel's end.
"""

from forge.app.audit.answer import Answer
from forge.app.plain_events import HasEvents
from forge.ledger.plain_rows import PlainEvent

COLUMNS = ("seq", "recorded_at", "kernel_id", "shape", "output", "excess", "reported_by")
DOUBTED = "KernelDoubted"
"""Type of the event that records a doubt."""
ANSWERS = ("CandidateVerified", "HumanDecided", "KernelDeprecated", DOUBTED, "KernelPromoted", "KernelRevoked")
"""Types of the events that doubts are made of, and that answer them."""


def doubts(workspace: HasEvents) -> Answer:
    """Return the doubts that neither a verification nor a person has answered."""
    rows = []
    for one in open_doubts(workspace):
        event = one.event
        sizes = ",".join(f"{axis}={size}" for axis, size in sorted(event["shape"].items()))
        told = (sizes, event["output"], event["excess"], one.actor)
        row = (one.seq, one.recorded_at, event["kernel_id"], *told)
        rows.append(row)
    note = "A doubt is a program's claim and decides nothing: verify the candidate again, or answer it."
    return Answer("Open doubts about kernels", COLUMNS, tuple(rows), notes=(note,))


def open_doubts(workspace: HasEvents) -> list[PlainEvent]:
    """Return the doubts without an answer, by their events' numbers."""
    if not workspace.events(DOUBTED):
        return []
    found: dict[int, PlainEvent] = {}
    candidates: dict[str, str] = {}
    for one in workspace.events(*ANSWERS):
        event = one.event
        match one.type:
            case "KernelPromoted":
                candidates[event["kernel_id"]] = event["candidate"]
            case "KernelDoubted":
                found[one.seq] = one
            case "KernelRevoked" | "KernelDeprecated":
                found = {seq: was for seq, was in found.items() if was.event["kernel_id"] != event["kernel_id"]}
            case "HumanDecided":
                ended = event["subject_stream"]
                found = {seq: was for seq, was in found.items() if f"doubt:{was.event['kernel_id']}" != ended}
            case _:
                judged = event["candidate"]
                found = {seq: was for seq, was in found.items() if candidates.get(was.event["kernel_id"]) != judged}
    return [one for _, one in sorted(found.items())]

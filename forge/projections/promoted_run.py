"""Checks that a promotion is of its run: decided once, of what its author handed in last, under its plan."""

import orjson

from forge.events import KernelPromoted, Recorded
from forge.projections.promotion import corrupt
from forge.projections.state import State


def require_run(state: State, recorded: Recorded[KernelPromoted]) -> None:
    """Raise LedgerCorrupt unless the run that a promotion names led to it; the run's row has this event already."""
    event = recorded.event
    run, handed_in = state.get("runs", event.run_id), state.get("trials", event.run_id)
    if run is None or handed_in is None:
        raise corrupt(recorded, f"run {event.run_id!r}, in which nothing was handed in")
    if run["promote_attempts"] != 1 or run["sealed"]:
        raise corrupt(recorded, f"run {event.run_id!r}, which had been decided before")
    if event.candidate != handed_in["candidate"]:
        raise corrupt(recorded, f"candidate {event.candidate!r}, but its run submitted {handed_in['candidate']!r}")
    if event.author != handed_in["author"]:
        raise corrupt(recorded, f"author {event.author!r}, expected {handed_in['author']!r}, who handed it in")
    planned = tuple(skill["id"] for skill in orjson.loads(str(run["skills"])))
    if event.skills != planned:
        raise corrupt(recorded, f"skills {event.skills}, expected {planned} by the run's plan")

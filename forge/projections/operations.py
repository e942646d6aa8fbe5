"""Folds what operations are: the newest description of each, which the registry publishes."""

from forge.ledger.replay import Line
from forge.projections.fold import Source
from forge.projections.state import State

TYPES = frozenset({"OperationDescribed"})


def take(state: State, line: Line, _: Source) -> None:
    """Store the description, in place of an earlier one of the same operation."""
    op = str(line.event["op"])
    named = {name: line.event[name] for name in ("description_sha256", "reference_sha256")}
    state.put("operations", {"op": op, **named, "seq": line.seq}, op)
    state.registry_changed(line)

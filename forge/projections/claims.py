"""Folds claims: what was claimed about candidates, and what was measured."""

from forge.ledger.replay import Line
from forge.projections.fold import Source
from forge.projections.rows import claim_row
from forge.projections.state import State

TYPES = frozenset({"ClaimRecorded", "ClaimAssessed"})


def take(state: State, line: Line, _: Source) -> None:
    """Store a claim as it was first made in its run, and the latest assessment of it."""
    key = (line.event["run_id"], line.event["claim_id"])
    row = state.get("claims", *key)
    if line.type == "ClaimRecorded":
        if row is None:
            state.put("claims", claim_row(line), *key)
    elif row is not None:
        row["measured"] = line.event["measured_value"]
        row["verdict"] = line.event["verdict"]
        row["assessed_seq"] = line.seq
        row["measured_by_seq"] = line.event["measured_by_seq"]
        state.put("claims", row, *key)

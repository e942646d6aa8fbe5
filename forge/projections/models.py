"""Folds measurements of whole models: each as it was recorded, gain or not."""

from forge.domain.digest import canonical
from forge.ledger.replay import Line
from forge.projections.fold import Source
from forge.projections.state import Row, State

TYPES = frozenset({"ModelMeasured"})


def take(state: State, line: Line, _: Source) -> None:
    """Store the measurement of a model, with its event's number, in `model_measurements`."""
    event = line.event
    document = {"seq": line.seq, "recorded_at": line.recorded_at, **event}
    row: Row = {
        "seq": line.seq,
        "model": str(event["model"]),
        "model_sha256": str(event["model_sha256"]),
        "gpu": str(event["gpu"]),
        "mode": str(event["mode"]),
        "conclusive": bool(event["conclusive"]),
        "document": canonical(document).decode(),
    }
    state.put("model_measurements", row, line.seq)
    state.registry_changed(line)

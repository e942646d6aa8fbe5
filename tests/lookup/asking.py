"""A published registry of a history, and the question that it answers."""

import json
from pathlib import Path

from forge.lookup import Registry
from forge.projections.files import put
from forge.projections.fold import Position
from forge.projections.snapshot import POINTER, named, pointer_to, render
from tests.projections.histories import LEDGER_ID, History, opened, promoted, rebuild
from tests.projections.values import ARCHITECTURES, SHAPE

ASK = {"op": "rmsnorm", "gpu": "h200", "dtype": "bf16", "shape": SHAPE}
BETWEEN = {"batch": 20, "hidden_size": 5000}
OUTSIDE = {"batch": 65, "hidden_size": 4096}


def publish(history: History, workspace: Path) -> None:
    """Publish it as it is now."""
    put(workspace / "kernel_registry", rebuild(history.events, history.head, LEDGER_ID))


def published(history: History, workspace: Path) -> Registry:
    publish(history, workspace)
    return Registry.open(workspace)


def shown_kernel() -> dict:
    """What a snapshot shows of one kernel."""
    history = opened()
    promoted(history)
    files = rebuild(history.events, history.head, LEDGER_ID)
    (snapshot,) = (content for name, content in files.items() if name.startswith("lookup-"))
    (kernel,) = json.loads(snapshot)["kernels"]
    return kernel


def publish_kernels(directory: Path, kernels: list[dict], *, seq: int = 1) -> None:
    """Publish kernels that no history promoted, as a publisher could who writes what he likes."""
    ordered = sorted(kernels, key=lambda one: (one["op"], one["gpu"], one["dtype"], one["kernel_id"]))
    lines = [(one["op"], one["gpu"], one["dtype"], json.dumps(one)) for one in ordered]
    publish_snapshot(directory, render(lines, ARCHITECTURES), seq=seq)


def publish_snapshot(directory: Path, content: bytes, *, seq: int = 1) -> None:
    """Publish any bytes as a snapshot, under their digest."""
    name, digest = named(content)
    head = Position(ledger_id=LEDGER_ID, seq=seq, event_hash="0" * 64)
    put(directory, {name: content, POINTER: pointer_to(digest, head)})

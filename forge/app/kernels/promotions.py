"""Finds the event that promoted a kernel."""

from forge.app.workspace import Workspace
from forge.errors import LedgerCorrupt
from forge.events import KernelPromoted, Recorded


def find_promotion(workspace: Workspace, kernel_id: str) -> Recorded[KernelPromoted]:
    """Return the promotion of a kernel that the registry has; raise LedgerCorrupt if the ledger doesn't."""
    family = kernel_id.rpartition("_v")[0]
    for recorded in workspace.ledger.read(stream=f"kernel:{family}"):
        event = recorded.event
        if isinstance(event, KernelPromoted) and event.kernel_id == kernel_id:
            return recorded  # type: ignore[return-value]  # its event was just looked at
    raise LedgerCorrupt(f"the registry has {kernel_id!r}, the ledger doesn't", hint="forge ledger rebuild")

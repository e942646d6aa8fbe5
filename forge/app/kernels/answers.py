"""Answers questions about kernels: from the projections as plain data, and which event promoted one."""

import orjson

from forge.app.known_kernel import require_kernel
from forge.app.workspace import Workspace
from forge.errors import LedgerCorrupt
from forge.events import KernelPromoted, Recorded
from forge.projections import documents

Data = dict[str, object]


def kernels(workspace: Workspace) -> list[Data]:
    """Return the registry's entries, as published."""
    with workspace.publication.tables() as connection:
        return [orjson.loads(text) for (text,) in connection.execute(documents.ENTRIES)]


def find_kernel(workspace: Workspace, kernel_id: str) -> Data:
    """Return one registry entry; raise UnknownName."""
    with workspace.publication.tables() as connection:
        require_kernel(connection, kernel_id)
        entry: Data = orjson.loads(connection.execute(documents.ENTRY, (kernel_id,)).fetchone()[0])
    return entry


def find_promotion(workspace: Workspace, kernel_id: str) -> Recorded[KernelPromoted]:
    """Return the promotion of a kernel that the registry has; raise LedgerCorrupt if the ledger doesn't."""
    family = kernel_id.rpartition("_v")[0]
    for recorded in workspace.ledger.read(stream=f"kernel:{family}"):
        event = recorded.event
        if isinstance(event, KernelPromoted) and event.kernel_id == kernel_id:
            return recorded  # type: ignore[return-value]  # its event was just looked at
    raise LedgerCorrupt(f"the registry has {kernel_id!r}, the ledger doesn't", hint="forge ledger rebuild")

"""Answers questions about kernels from the projections, as plain data for a table or for JSON."""

import orjson

from forge.app.known_kernel import require_kernel
from forge.app.workspace import Workspace
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

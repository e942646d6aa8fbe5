"""Records what an operation is, so that programs can adopt its kernels. A description is recorded if it changed.

The files are published with the registry: `ops/<op>.json` and `ops/<op>.py`.
"""

from forge.app.stored.own_operation import make_task_known
from forge.app.workspace import Workspace
from forge.domain.digest import canonical
from forge.events import OperationDescribed, TaskCreated
from forge.operations import find_operation
from forge.operations.description import description, reference_bytes

PROMOTED = "SELECT DISTINCT op FROM kernels ORDER BY op"
"""Query for the operations that have a kernel."""


def describe(workspace: Workspace, op: str, *, actor: str | None = None) -> int | None:
    """Record the description of an operation; return the event's number, or None if it is recorded already."""
    operation = find_operation(op)
    blobs = (canonical(description(operation)), reference_bytes(operation))
    described, reference = (workspace.blobs.put(blob) for blob in blobs)
    event = OperationDescribed(op=op, description_sha256=described, reference_sha256=reference)
    stream = event.stream()
    version = workspace.ledger.stream_version(stream)
    if version and list(workspace.ledger.read(stream=stream))[-1].event == event:
        return None
    return workspace.append_at(event, version, actor=actor).first_seq


def describe_promoted(workspace: Workspace) -> dict[str, int]:
    """Record the description of each operation with a promoted kernel; return the new events by operation."""
    for created in workspace.ledger.read(types=("TaskCreated",)):
        if isinstance(created.event, TaskCreated):
            make_task_known(workspace.blobs, created.event.task)
    with workspace.publication.tables() as connection:
        named = [str(op) for (op,) in connection.execute(PROMOTED)]
    recorded = {op: describe(workspace, op) for op in named}
    workspace.catch_up()
    return {op: seq for op, seq in recorded.items() if seq is not None}

"""Lists the user's own operations of a workspace: those that its tasks name."""

from forge.app.stored.own_operation import contract_of
from forge.app.workspace import Workspace
from forge.domain.own_operation import PREFIX, is_own
from forge.errors import UnknownName, UsageError, near_names
from forge.events import KernelPromoted, TaskCreated
from forge.ledger.blobs import BlobStore
from forge.operations import OPERATIONS
from forge.operations.own import own_operation

Data = dict[str, object]


def own_operations(workspace: Workspace) -> list[Data]:
    """Return the own operations that tasks of a workspace name, the newest task of each last, in order of name."""
    tasks: dict[str, list[TaskCreated]] = {}
    for recorded in workspace.ledger.read(types=("TaskCreated",)):
        if isinstance(recorded.event, TaskCreated) and is_own(recorded.event.task.op):
            tasks.setdefault(recorded.event.task.op, []).append(recorded.event)
    kernels: dict[str, list[str]] = {}
    for promoted in workspace.ledger.read(types=("KernelPromoted",)):
        if isinstance(promoted.event, KernelPromoted):
            kernels.setdefault(promoted.event.task.op, []).append(promoted.event.kernel_id)
    return [_described(workspace.blobs, created, kernels.get(op, [])) for op, created in sorted(tasks.items())]


def find_own_operation(workspace: Workspace, untrusted_name: str) -> Data:
    """Return the operation of a reference file that has this name, or begins so; `own_` may be left out.

    Raises UsageError if several operations do, and UnknownName if none does.
    """
    found = own_operations(workspace)
    names = [str(one["op"]) for one in found]
    fitting = [name for name in names if name.removeprefix(PREFIX).startswith(untrusted_name.removeprefix(PREFIX))]
    exact = [name for name in names if name == untrusted_name]
    chosen = exact or (fitting if untrusted_name.removeprefix(PREFIX) else [])
    if len(chosen) > 1:
        raise UsageError(
            f"{len(chosen)} own operations begin with {untrusted_name!r}: expected one of {', '.join(chosen[:5])}",
            hint="forge op list",
        )
    if not chosen:
        whole = {name.removeprefix(PREFIX).rpartition("_")[0]: name for name in names}
        near = tuple(whole.get(one, one) for one in near_names(untrusted_name, [*whole, *OPERATIONS, *names]))
        raise UnknownName("operation", untrusted_name, [*OPERATIONS, *names], near=near, listed_by="forge op list")
    return found[names.index(chosen[0])]


def _described(blobs: BlobStore, created: list[TaskCreated], kernels: list[str]) -> Data:
    """Return what is known of one own operation, by its newest task."""
    newest = created[-1]
    contract, source = contract_of(blobs, newest.task), blobs.get(newest.task.reference_sha256)
    operation, tried = own_operation(contract, source), newest.admission
    return {
        "op": operation.name,
        "signature": operation.signature,
        "summary": operation.summary,
        "dtypes": [contract.dtype],
        "shape": contract.shape,
        "operands": [one.model_dump(mode="json") for one in contract.arguments],
        "weights": [one.model_dump(mode="json") for one in contract.weights],
        "results": [one.model_dump(mode="json") for one in contract.results],
        "numerics": operation.numerics,
        "mutants": {"killed": tried.killed, "total": tried.mutants} if tried else None,
        "tasks": [one.task_id for one in created],
        "kernels": kernels,
        "reference": source.decode(),
    }

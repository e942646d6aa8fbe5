"""Loads the user's own operations: a task names its reference file and its contract by digest."""

import orjson

from forge.domain.own_operation import Contract, is_own
from forge.domain.task import Task
from forge.ledger.blobs import BlobStore


def make_task_known(blobs: BlobStore, task: Task) -> None:
    """Register the operation of a recorded task with `find_operation`, unless it is in the catalogue."""
    if is_own(task.op):
        from forge.operations.own import make_known, own_operation  # with the whole catalogue, so only if needed

        make_known(own_operation(contract_of(blobs, task), blobs.get(task.reference_sha256)))


def contract_of(blobs: BlobStore, task: Task) -> Contract:
    """Return the contract of an own operation, which its task names."""
    return Contract.model_validate(orjson.loads(blobs.get(task.inputs_sha256)))

"""The catalogue of operations: one file each.

To add an operation: its file and its line in `OPERATIONS`; `tests/contracts/test_operations.py` holds it to its word.
"""

import inspect

from forge.domain.digest import Digest, sha256
from forge.domain.operation import Operation
from forge.domain.policy import Policy
from forge.errors import UnknownName
from forge.operations.fused_add_rmsnorm import FUSED_ADD_RMSNORM
from forge.operations.rmsnorm import RMSNORM

OPERATIONS: dict[str, Operation] = {operation.name: operation for operation in (RMSNORM, FUSED_ADD_RMSNORM)}


def find_operation(untrusted_name: str) -> Operation:
    """Return the operation called `untrusted_name`, or raise UnknownName."""
    operation = OPERATIONS.get(untrusted_name)
    if operation is None:
        raise UnknownName("operation", untrusted_name, list(OPERATIONS))
    return operation


def reference_source(operation: Operation) -> str:
    """The reference as a module of its own: what the baseline's guest runs and the prompt shows."""
    body = inspect.getsource(operation.reference)
    return f"from __future__ import annotations\n\nimport torch\n\n\n{body}"


def tolerance_digest(operation: Operation, policy: Policy) -> Digest:
    """Name the bound: its derivation, the oracle's source and the policy's multipliers."""
    multiples = f"{policy.tolerance_baseline_multiple} {policy.tolerance_accumulate_multiple}"
    return sha256(f"{operation.numerics}\n{inspect.getsource(operation.oracle)}\n{multiples}".encode())

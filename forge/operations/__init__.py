"""The catalogue of operations: one file each.

To add an operation, add its file and its line in `OPERATIONS`. `tests/contracts/test_operations.py` checks it.
"""

import inspect
from collections.abc import Callable
from functools import cache

from forge.domain.digest import Digest, sha256
from forge.domain.own_operation import is_own
from forge.domain.policy import MeasuredBaseline, Policy
from forge.errors import UnknownName
from forge.operations.attention_decode import ATTENTION_DECODE
from forge.operations.attention_prefill import ATTENTION_PREFILL
from forge.operations.cross_entropy import CROSS_ENTROPY
from forge.operations.dequant_int4 import DEQUANT_INT4
from forge.operations.dequant_int8 import DEQUANT_INT8
from forge.operations.fused_add_rmsnorm import FUSED_ADD_RMSNORM
from forge.operations.gated_rmsnorm_quant import GATED_RMSNORM_QUANT
from forge.operations.geglu_tanh import GEGLU_TANH
from forge.operations.gelu_mul import GELU_MUL
from forge.operations.grouped_matmul import GROUPED_MATMUL
from forge.operations.kv_cache_append import KV_CACHE_APPEND
from forge.operations.layernorm import LAYERNORM
from forge.operations.matmul import MATMUL
from forge.operations.matmul_bias_act import MATMUL_BIAS_ACT
from forge.operations.matmul_fp8 import MATMUL_FP8
from forge.operations.merge_attention import MERGE_ATTENTION
from forge.operations.moe_fused_gate import MOE_FUSED_GATE
from forge.operations.operation import Operation
from forge.operations.own import find_own
from forge.operations.quantize_fp8 import QUANTIZE_FP8
from forge.operations.quantize_fp8_per_tensor import QUANTIZE_FP8_PER_TENSOR
from forge.operations.rmsnorm import RMSNORM
from forge.operations.rmsnorm_strided import RMSNORM_STRIDED
from forge.operations.rope import ROPE
from forge.operations.sampling import SAMPLING
from forge.operations.silu_mul import SILU_MUL
from forge.operations.softmax import SOFTMAX
from forge.operations.topk_per_row import TOPK_PER_ROW
from forge.operations.topk_softmax import TOPK_SOFTMAX

_ALL = (
    *(RMSNORM, RMSNORM_STRIDED, FUSED_ADD_RMSNORM, LAYERNORM, SOFTMAX),
    *(SILU_MUL, GELU_MUL, GEGLU_TANH, ROPE),
    *(QUANTIZE_FP8, QUANTIZE_FP8_PER_TENSOR, TOPK_SOFTMAX, CROSS_ENTROPY),
    *(DEQUANT_INT8, DEQUANT_INT4, GATED_RMSNORM_QUANT),
    *(MATMUL, MATMUL_BIAS_ACT, MATMUL_FP8, GROUPED_MATMUL, TOPK_PER_ROW, SAMPLING, MOE_FUSED_GATE),
    *(ATTENTION_DECODE, ATTENTION_PREFILL, MERGE_ATTENTION, KV_CACHE_APPEND),
)
OPERATIONS: dict[str, Operation] = {operation.name: operation for operation in _ALL}


def find_operation(untrusted_name: str) -> Operation:
    """Return the operation called `untrusted_name`, or raise UnknownName."""
    if is_own(untrusted_name):
        return find_own(untrusted_name)
    operation = OPERATIONS.get(untrusted_name)
    if operation is None:
        raise UnknownName("operation", untrusted_name, list(OPERATIONS), listed_by="forge op list")
    return operation


def reference_source(operation: Operation) -> str:
    """Return the reference as a module of its own. The baseline's guest runs it, and the brief shows it."""
    if operation.own is not None:
        return operation.own.source.decode()
    return _module(operation.reference)


def baselines_of(operation: Operation, policy: Policy) -> tuple[MeasuredBaseline, ...]:
    """Return the policy's baselines that the operation has."""
    named = (kind for kind in policy.baselines if kind != "contenders")
    return tuple(kind for kind in named if kind != "vendor" or operation.vendor is not None)


def vendor_source(operation: Operation) -> str | None:
    """Return the vendor's operator as a module of its own; None if the operation names none."""
    return _module(operation.vendor) if operation.vendor is not None else None


def _module(function: Callable[..., object]) -> str:
    return f"from __future__ import annotations\n\nimport torch\n\n\n{_source(function)}"


@cache
def _source(function: Callable[..., object]) -> str:
    """Return a function's source. Python reads the whole file for it, and many tasks ask for the same few."""
    return inspect.getsource(function)


def tolerance_digest(operation: Operation, policy: Policy) -> Digest:
    """Return the digest of the bound: its derivation, the oracle's source and the policy's multipliers."""
    multiples = f"{policy.tolerance_baseline_multiple} {policy.tolerance_accumulate_multiple}"
    return sha256(f"{operation.numerics}\n{_source(operation.oracle)}\n{multiples}".encode())

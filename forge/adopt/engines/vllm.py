"""Lets vLLM ask for promoted kernels: a provider called `forge` of vLLM's IR operations.

Written against the registration that vLLM's own kernels use (`vllm.ir.ops.<op>.register_impl`), as published in
2026. It was tested against a stand-in of that protocol, and not run inside vLLM.

Forge names `register` under the entry point `vllm.general_plugins`; FORGE_REGISTRY is the registry's folder,
FORGE_REGISTRY_KEY the key that must vouch for it. vLLM then orders its providers by its own option `ir_op_priority`.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from forge.adopt.adopting import Adopted, adopt
from forge.adopt.guards import KnownOperand
from forge.adopt.operation import AdoptedOperation
from forge.errors import UsageError

if TYPE_CHECKING:
    import torch

REGISTRY = "FORGE_REGISTRY"
"""Environment variable with the registry's folder."""
KEY = "FORGE_REGISTRY_KEY"
"""Environment variable with the ledger's verifier key, or a file with it, which vouches for the registry."""
PROVIDER = "forge"
Function = Callable[..., Any]  # an engine's function, which may take anything


class EngineOperation(NamedTuple):
    """An operation of vLLM and the one of Forge that answers it."""

    vllm: str
    forge: str
    ranks: tuple[int, ...]
    """Numbers of dimensions of the tensors before the scalar."""


OPERATIONS = (EngineOperation("rms_norm", "rmsnorm", (2, 1)),)
"""Operations with the same operands in the same order in both, and one scalar after them."""


def register() -> Adopted | None:
    """Register Forge as a provider; called by vLLM. Without FORGE_REGISTRY nothing is registered."""
    folder = os.environ.get(REGISTRY)
    if not folder:
        return None
    from vllm import ir  # type: ignore[import-not-found]  # there only inside vLLM

    return register_with(ir.ops, folder, key=os.environ.get(KEY))


# Any: vLLM's table of operations has no types
def register_with(ir_ops: Any, registry: str, *, key: str | None = None) -> Adopted:
    """Register a provider of each operation that both know; raise UsageError if there is none.

    With `key`, that key must vouch for the registry; an empty one is refused.
    """
    from forge.lookup.registry import Registry

    known = Registry.open(registry, key=key).operations
    taken = [one for one in OPERATIONS if one.forge in known and hasattr(ir_ops, one.vllm)]
    if not taken:
        names = ", ".join(one.forge for one in OPERATIONS)
        raise UsageError(
            f"the registry {registry!r} describes none of {names}, or this vLLM has none of them: expected one that "
            "both have",
            hint="forge op describe",
        )
    natives = {one.forge: native_of(getattr(ir_ops, one.vllm)) for one in taken}
    adopted = adopt(registry, [one.forge for one in taken], trust="promoted", fallback=natives, key=key)
    for one in taken:
        supports = supports_args(one, adopted.operations[one.forge])
        getattr(ir_ops, one.vllm).register_impl(PROVIDER, supports_args=supports, supported=True)(provider(one))
    return adopted


# Any: vLLM's operation has no type
def native_of(operation: Any) -> Function:
    """Return vLLM's own implementation, which answers where no kernel fits."""
    native: Function = operation.impls["native"].impl_fn
    return native


def supports_args(taken: EngineOperation, operation: AdoptedOperation) -> Function:
    """Return a function that looks at devices, element types and ranks only; the guards at run time do the rest.

    vLLM asks it while tracing, where sizes may be symbols and addresses don't exist. Where the registry has no kernel
    for the device and element type, vLLM's next provider answers.
    """
    count = len(taken.ranks)

    def supports(*arguments: Any) -> bool:
        tensors: tuple[torch.Tensor | None, ...] = arguments[:count]
        if any(one is None for one in tensors) or any(one is not None for one in arguments[count + 1 :]):
            return False  # no weight, or an option that the operation doesn't have
        ranks = tuple(one.dim() for one in tensors if one is not None)
        types = {str(one.dtype) for one in tensors if one is not None}
        if ranks != taken.ranks or len(types) != 1 or not types <= {"torch.float16", "torch.bfloat16"}:
            return False
        operands = tuple(KnownOperand(one.device, one.dtype, None) for one in tensors if one is not None)
        return operation.rule_out(operands) is None

    return supports


def provider(taken: EngineOperation) -> Function:
    """Return the implementation that vLLM calls: the adopted operation, which is opaque to its compiler."""
    count = len(taken.ranks) + 1

    def call(*arguments: Any) -> Any:
        import torch

        return getattr(torch.ops.forge, taken.forge)(*arguments[:count])

    call.__name__ = taken.vllm
    return call

"""Answers FlashInfer's `trace_apply` by adopted operations: a map from its definitions' names to functions.

A definition's name has the hidden size, and its inputs have no epsilon: FlashInfer's definitions fix it at 1e-6. A
model with another epsilon would get wrong answers, so the caller says the model's, and another one is refused.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from forge.adopt.adopting import Adopted
from forge.errors import UsageError

if TYPE_CHECKING:
    import torch

EPSILON = 1e-6
"""Epsilon of the definitions `rmsnorm_h*` and `fused_add_rmsnorm_h*`, which fix it. Another epsilon is refused."""
LARGEST_SIZE = 1 << 20
"""Largest hidden size for which a definition is made, in elements. Chosen; it is far above those of published
models."""
Function = Callable[..., Any]  # an engine's function, which may return anything
NAMES = ("rmsnorm", "fused_add_rmsnorm")


def solutions(ops: Adopted, hidden_sizes: Iterable[int], *, epsilon: float) -> dict[str, Function]:
    """Return the map for `flashinfer.trace_apply.enable_apply`, one entry for each adopted norm and hidden size.

    Adopt with `fallback=fallbacks()` before enabling it, so that FlashInfer's own functions answer elsewhere. Raise
    UsageError if no norm is adopted, for a bad size, or for another epsilon.
    """
    if epsilon != EPSILON:
        raise UsageError(
            f"bad epsilon {epsilon!r:.100}: FlashInfer's definitions fix it at {EPSILON}; don't apply them"
        )
    named = [name for name in NAMES if name in ops.operations]
    if not named:
        raise UsageError(f"no norm is adopted: expected {' or '.join(NAMES)} among {sorted(ops.operations)}")
    sizes = list(dict.fromkeys(hidden_sizes))
    for size in sizes:
        if type(size) is not int or not 1 <= size <= LARGEST_SIZE:
            raise UsageError(f"bad hidden size {size!r:.100}: expected 1 to {LARGEST_SIZE}")
    functions: dict[str, Function] = {"rmsnorm": _rmsnorm, "fused_add_rmsnorm": _fused_add_rmsnorm}
    return {f"{name}_h{size}": functions[name] for name in named for size in sizes}


def fallbacks() -> dict[str, Function]:
    """Return FlashInfer's own functions as fallbacks of `adopt`; call it before `enable_apply` replaces them."""
    from flashinfer import norm  # type: ignore[import-not-found]  # there only beside FlashInfer

    return fallbacks_of(norm.rmsnorm, norm.fused_add_rmsnorm)


def fallbacks_of(rmsnorm: Function, fused_add_rmsnorm: Function) -> dict[str, Function]:
    """Return these functions in the form that adopted operations have: no operand is written."""

    def fused(x: "torch.Tensor", residual: "torch.Tensor", weight: "torch.Tensor", eps: float) -> object:
        y, new_residual = x.clone(), residual.clone()
        fused_add_rmsnorm(y, new_residual, weight, eps)
        return y, new_residual

    def norm(x: "torch.Tensor", weight: "torch.Tensor", eps: float) -> object:
        return rmsnorm(x, weight, eps)

    return {"rmsnorm": norm, "fused_add_rmsnorm": fused}


# The names of the arguments are those of FlashInfer's definitions.
def _rmsnorm(hidden_states: "torch.Tensor", weight: "torch.Tensor") -> object:
    import torch

    found: object = torch.ops.forge.rmsnorm(hidden_states, weight, EPSILON)
    return found


def _fused_add_rmsnorm(hidden_states: "torch.Tensor", residual: "torch.Tensor", weight: "torch.Tensor") -> object:
    """Return both outputs; FlashInfer copies them to where its own function writes them."""
    import torch

    found: object = torch.ops.forge.fused_add_rmsnorm(hidden_states, residual, weight, EPSILON)
    return found

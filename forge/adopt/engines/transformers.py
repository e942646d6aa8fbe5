"""Replaces the norms of a `transformers` model by adopted operations, layer by layer.

A layer is taken by its form, not by its model. Its class name ends in `RMSNorm`, and it has a `weight` of one
dimension and `variance_epsilon` or `eps`. Its answer to a probe is that of `rmsnorm`. Some families add one to the
weight: the probe leaves those out. It was run with the Llama of transformers 5.22, with random weights.
"""

from typing import TYPE_CHECKING, Any

from forge.adopt.adopting import Adopted
from forge.errors import UsageError

if TYPE_CHECKING:
    import torch

ENDING = "RMSNorm"
"""End of the class names of the layers that are replaced."""
EPSILONS = ("variance_epsilon", "eps")
"""Names under which the layers of transformers keep their epsilon."""
OP = "rmsnorm"
"""Operation that answers for the layers."""
PROBE_ROWS = 4
"""Number of random rows on which a layer is compared with the operation, and the seed that draws them. Chosen; one
row already shows another formula."""
PROBE_BOUND = 2.0**-6
"""Largest difference to the reference: four roundings of bf16, since layers may round before the weight."""


def kernelize(model: "torch.nn.Module", ops: Adopted) -> list[str]:
    """Let the model's norms call the adopted operation; return the names of the layers that were replaced.

    A replaced layer calls its own forward where the registry has no kernel, as `Adopted.function` says.

    Raises UsageError if `rmsnorm` isn't adopted, or no layer has the form.
    """
    if OP not in ops.operations:
        adopted = ", ".join(sorted(ops.operations))
        raise UsageError(f"{OP!r} isn't adopted: expected it among the ops of adopt(), which has {adopted}")
    replaced = []
    for name, module in model.named_modules():
        epsilon = _epsilon(module)
        if epsilon is not None and _agrees(module, epsilon, ops) and "_forge_forward" not in vars(module):
            module._forge_forward = module.forward
            module.forward = _forward(module, epsilon, ops)
            replaced.append(name)
    if not replaced:
        raise UsageError(
            f"{type(model).__name__} has no layer to replace: expected one whose class name ends in {ENDING!r}, with "
            "a weight and an epsilon"
        )
    return replaced


def restore(model: "torch.nn.Module") -> None:
    """Give every replaced layer its own forward again."""
    for module in model.modules():
        if "_forge_forward" in vars(module):
            del module.forward
            del module._forge_forward


def _epsilon(module: "torch.nn.Module") -> float | None:
    """Return the epsilon of a norm that computes what `rmsnorm` is; None for any other module."""
    weight = getattr(module, "weight", None)
    if not type(module).__name__.endswith(ENDING) or weight is None or weight.dim() != 1:
        return None
    found = [getattr(module, name) for name in EPSILONS if isinstance(getattr(module, name, None), float)]
    return found[0] if found else None


def _agrees(module: "torch.nn.Module", epsilon: float, ops: Adopted) -> bool:
    """Return whether the layer computes what the operation's reference does, on random rows."""
    import torch

    weight: torch.Tensor = module.weight
    generator = torch.Generator().manual_seed(PROBE_ROWS)
    rows = torch.randn(PROBE_ROWS, weight.shape[0], generator=generator).to(weight)
    with torch.no_grad():
        own, other = module(rows), torch.as_tensor(ops.operations[OP].fallback(rows, weight, epsilon))
    return bool(
        own.shape == rows.shape and torch.allclose(own.float(), other.float(), rtol=PROBE_BOUND, atol=PROBE_BOUND)
    )


# Any: a layer's forward, which is the model's own
def _forward(module: "torch.nn.Module", epsilon: float, ops: Adopted) -> Any:
    def own(rows: "torch.Tensor", _weight: "torch.Tensor", _epsilon: float) -> object:
        return module._forge_forward(rows)

    norm: Any = ops.function(OP, own)

    def forward(hidden_states: "torch.Tensor") -> "torch.Tensor":
        sizes = hidden_states.shape
        rows = hidden_states.reshape(-1, sizes[-1])
        found: torch.Tensor = norm(rows, module.weight, epsilon)
        return found.view(sizes)

    return forward

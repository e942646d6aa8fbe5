"""Softmax: y = exp(x - max x) / sum exp(x - max x), per row, computed in fp32.

The maximum is subtracted so that nothing overflows (Blanchard, Higham and Higham, "Accurately computing the
log-sum-exp and softmax functions", IMA J. Numer. Anal. 41(4), 2021). Minus infinity, as in masked attention scores,
gives zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from forge.domain.relation import RowsIndependent, RowsPermuted
from forge.domain.tensors import ITEMSIZE_BYTES, DType, TensorSpec
from forge.operations.operation import Expectation, Operation
from forge.operations.running_sum import drift_share

if TYPE_CHECKING:
    import torch

BLOCK = 32
"""Number of elements that the variant with a running maximum takes at once."""


def softmax(x: torch.Tensor) -> torch.Tensor:
    """X [batch, hidden_size] -> y [batch, hidden_size], row by row, computed in fp32."""
    return x.float().softmax(-1).to(x.dtype)


# Compute y [batch, hidden_size] in fp64, from x like y.
# The error scale is y (1 + d / 4), where d is how far an element lies below the row's largest.
def oracle(x: torch.Tensor) -> tuple[Expectation, ...]:
    """The same in fp64."""
    h = x.double()
    y = h.softmax(-1)
    below = (h.amax(-1, keepdim=True) - h).nan_to_num(nan=0.0, posinf=0.0)
    lost = drift_share(y).expand_as(y)
    return (Expectation(value=y, scale=y * (1 + below / 4), terms=x.shape[-1], drift=lost),)


def _bytes_moved(shape: Mapping[str, int], dtype: DType) -> int:
    return 2 * shape["batch"] * shape["hidden_size"] * ITEMSIZE_BYTES[dtype]


def _flops(shape: Mapping[str, int]) -> int:
    return 5 * shape["batch"] * shape["hidden_size"]


def _computed(
    change: Callable[[torch.Tensor], torch.Tensor],
) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return an operation with a formula in fp32, its result in the operand's dtype."""
    return lambda x: change(x.float()).to(x.dtype)


def _exponentials(h: torch.Tensor) -> torch.Tensor:
    return (h - h.amax(-1, keepdim=True)).exp()


def _normalised(e: torch.Tensor) -> torch.Tensor:
    return e / e.sum(-1, keepdim=True)


MUTANTS = {
    "maximum not subtracted": _computed(lambda h: _normalised(h.exp())),
    "largest magnitude subtracted": _computed(lambda h: _normalised((h - h.abs().amax(-1, keepdim=True)).exp())),
    "one row's maximum for all": _computed(lambda h: _normalised((h - h[:1].amax(-1, keepdim=True)).exp())),
    "one row's sum for all": _computed(lambda h: _exponentials(h) / _exponentials(h[:1]).sum(-1, keepdim=True)),
    "wrong axis": _computed(lambda h: h.softmax(0)),
    "not normalised": _computed(_exponentials),
    "logarithm left in": _computed(lambda h: h.log_softmax(-1)),
    "powers of two": _computed(lambda h: _normalised((h - h.amax(-1, keepdim=True)).exp2())),
    "one more in the sum": _computed(lambda h: _exponentials(h) / (1 + _exponentials(h).sum(-1, keepdim=True))),
    "last column not summed": _computed(
        lambda h: _exponentials(h) / (_exponentials(h).sum(-1, keepdim=True) - _exponentials(h)[..., -1:])
    ),
    "zeros taken for padding": _computed(lambda h: _normalised(_exponentials(h) * (h != 0))),
    "exponent held above -8": _computed(lambda h: _normalised((h - h.amax(-1, keepdim=True)).clamp(min=-8.0).exp())),
}


def _in_blocks(h: torch.Tensor) -> torch.Tensor:
    """Rescale the sum whenever a block raises the maximum, as in flash attention."""
    import torch

    largest = torch.full_like(h[..., :1], -math.inf)
    total = torch.zeros_like(largest)
    for block in h.split(BLOCK, -1):
        raised = torch.maximum(largest, block.amax(-1, keepdim=True))
        # while the maximum is minus infinity, the sum is empty and needs no rescaling
        kept = torch.where(largest == -math.inf, 0.0, (largest - raised).exp())
        added = torch.where(block == -math.inf, 0.0, (block - raised).exp())
        total = total * kept + added.sum(-1, keepdim=True)
        largest = raised
    return (h - largest).exp() / total


VARIANTS = {
    "in blocks with a running maximum": _computed(_in_blocks),
    "powers of two of scaled differences": _computed(
        lambda h: _normalised(((h - h.amax(-1, keepdim=True)) * math.log2(math.e)).exp2())
    ),
    "times the reciprocal of the sum": _computed(
        lambda h: _exponentials(h) * _exponentials(h).sum(-1, keepdim=True).reciprocal()
    ),
}


def vendor(x: torch.Tensor) -> torch.Tensor:
    """Compute y [batch, hidden_size] with torch.nn.functional.softmax, which keeps fp32 inside."""
    import torch

    return torch.nn.functional.softmax(x, -1)


SOFTMAX = Operation(
    name="softmax",
    summary="softmax of each row",
    axes=("batch", "hidden_size"),
    inputs=(TensorSpec(name="x", axes=("batch", "hidden_size")),),
    scalars={},
    outputs=(TensorSpec(name="y", axes=("batch", "hidden_size")),),
    dtypes=("fp32", "fp16", "bf16"),
    signature="softmax(x) -> y",
    reference=softmax,
    oracle=oracle,
    numerics=(
        "Let d = max x - x. The subtraction errs by u_acc d. A kernel that takes powers of two multiplies d "
        "by log2 e, which errs by about u_acc d again. exp makes a relative error of what was an absolute "
        "one. The sum of n = hidden_size positive terms errs by about u_acc (sqrt(n) + 8) (blocked "
        "summation). The exponential and the division err by a few u_acc more. All terms are positive, so S = "
        "y (1 + d / 4). With the factor c (sqrt(n) + 8) the second part allows at least 4.5 u_acc d. The "
        "difference must be formed before it is scaled: x log2 e - max x log2 e errs by u_acc |x|, not by "
        "u_acc d. Rounded once: one u_out."
    ),
    bytes_moved=_bytes_moved,
    flops=_flops,
    workloads=(
        {"batch": 1, "hidden_size": 4096},
        {"batch": 16, "hidden_size": 4096},
        {"batch": 16, "hidden_size": 128256},
        {"batch": 64, "hidden_size": 1500},
        {"batch": 4096, "hidden_size": 128},
        {"batch": 4096, "hidden_size": 4096},
    ),
    row_axis="batch",
    reduced_axis="hidden_size",
    specials="as_reference",
    masks=True,
    relations=(RowsIndependent(), RowsPermuted()),
    mutants=MUTANTS,
    variants=VARIANTS,
    vendor=vendor,
)

"""LayerNorm: y = (x - mean) / sqrt(variance + eps) * weight + bias, per row, computed in fp32.

Source of the definition: Ba, Kiros and Hinton, "Layer Normalization" (2016), equation 3. As in torch.nn.LayerNorm,
the epsilon is under the root, and the variance is divided by the number of elements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from forge.domain.relation import RowsIndependent, RowsPermuted, Scaled
from forge.domain.tensors import ITEMSIZE_BYTES, DType, TensorSpec
from forge.operations.operation import Expectation, Operation
from forge.operations.running_sum import drift_share

if TYPE_CHECKING:
    import torch


def layernorm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    """X [batch, hidden_size], weight, bias [hidden_size] -> y [batch, hidden_size], computed in fp32."""
    h = x.float()
    centred = h - h.mean(-1, keepdim=True)
    scale = centred.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (centred * scale * weight.float() + bias.float()).to(x.dtype)


# Compute y [batch, hidden_size] in fp64, from x like y, and weight and bias [hidden_size].
# The error scale, shaped like y, is (|x - mean| + mean of |x|) / deviation * |weight| + |bias|.
def oracle(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> tuple[Expectation, ...]:
    """The same in fp64."""
    h, w, b = x.double(), weight.double(), bias.double()
    centred = h - h.mean(-1, keepdim=True)
    root = centred.square().mean(-1, keepdim=True).add(eps).rsqrt()
    size = (centred.abs() + h.abs().mean(-1, keepdim=True)) * root * w.abs() + b.abs()
    lost = (drift_share(centred.square()) / 2).expand_as(size)
    return (Expectation(value=centred * root * w + b, scale=size, terms=x.shape[-1], drift=lost),)


def _bytes_moved(shape: Mapping[str, int], dtype: DType) -> int:
    rows, width = shape["batch"], shape["hidden_size"]
    return (2 * rows * width + 2 * width) * ITEMSIZE_BYTES[dtype]


def _flops(shape: Mapping[str, int]) -> int:
    return 7 * shape["batch"] * shape["hidden_size"]


Normalise = Callable[["torch.Tensor", float], "torch.Tensor"]
Affine = Callable[["torch.Tensor", "torch.Tensor", "torch.Tensor", float], "torch.Tensor"]


def _affine(normalise: Normalise) -> Affine:
    """Return an operation that normalises in fp32, applies weight and bias correctly, and rounds to the dtype."""
    return lambda x, weight, bias, eps: (normalise(x.float(), eps) * weight.float() + bias.float()).to(x.dtype)


def _after(change: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]) -> Affine:
    """Return an operation that normalises correctly in fp32, then applies `change` to rows, weight and bias."""
    return lambda x, weight, bias, eps: change(_normalised(x.float(), eps), weight.float(), bias.float()).to(x.dtype)


def _centred(h: torch.Tensor) -> torch.Tensor:
    return h - h.mean(-1, keepdim=True)


def _normalised(h: torch.Tensor, eps: float, axis: int = -1) -> torch.Tensor:
    centred = h - h.mean(axis, keepdim=True)
    return centred * centred.square().mean(axis, keepdim=True).add(eps).rsqrt()


def _unbiased(h: torch.Tensor, eps: float) -> torch.Tensor:
    count = max(1, h.shape[-1] - 1)
    return _centred(h) * (_centred(h).square().sum(-1, keepdim=True) / count).add(eps).rsqrt()


def _from_mean_square(h: torch.Tensor, eps: float) -> torch.Tensor:
    """Use mean(x^2) - mean(x)^2, which cancels if the mean is large compared with the deviation."""
    variance = h.square().mean(-1, keepdim=True) - h.mean(-1, keepdim=True).square()
    return _centred(h) * variance.clamp(min=0.0).add(eps).rsqrt()


def _last_not_summed(h: torch.Tensor, eps: float) -> torch.Tensor:
    centred = h - h[..., :-1].sum(-1, keepdim=True) / h.shape[-1]
    return centred * centred.square().mean(-1, keepdim=True).add(eps).rsqrt()


MUTANTS = {
    "eps dropped": _affine(lambda h, _: _normalised(h, 0.0).nan_to_num()),
    "eps outside the root": _affine(
        lambda h, eps: _centred(h) / (_centred(h).square().mean(-1, keepdim=True).sqrt() + eps)
    ),
    "eps fixed at 1e-6": _affine(lambda h, _: _normalised(h, 1e-6)),
    "mean not subtracted": _affine(lambda h, eps: h * h.square().mean(-1, keepdim=True).add(eps).rsqrt()),
    "mean subtracted from the square alone": _affine(
        lambda h, eps: h * _centred(h).square().mean(-1, keepdim=True).add(eps).rsqrt()
    ),
    "mean of squares for the variance": _affine(
        lambda h, eps: _centred(h) * h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    ),
    "variance from the mean of squares": _affine(_from_mean_square),
    "sum for mean": _affine(lambda h, eps: _centred(h) * _centred(h).square().sum(-1, keepdim=True).add(eps).rsqrt()),
    "divided by one less": _affine(_unbiased),
    "last column not summed": _affine(_last_not_summed),
    "wrong axis": _affine(lambda h, eps: _normalised(h, eps, axis=0)),
    "weight ignored": _after(lambda n, _, b: n + b),
    "weight plus one": _after(lambda n, w, b: n * (w + 1) + b),
    "bias ignored": _after(lambda n, w, _: n * w),
    "bias scaled as well": _after(lambda n, w, b: (n + b) * w),
    "bias subtracted": _after(lambda n, w, b: n * w - b),
    "weight and bias exchanged": _after(lambda n, w, b: n * b + w),
}


def _running(h: torch.Tensor, eps: float) -> torch.Tensor:
    """Join mean and squared deviations block by block (Chan, Golub and LeVeque, 1983, equation 2.1)."""
    import torch

    count, mean, squares = 0, torch.zeros_like(h[..., :1]), torch.zeros_like(h[..., :1])
    for block in h.split(32, -1):
        more = block.shape[-1]
        between = block.mean(-1, keepdim=True) - mean
        squares = squares + _centred(block).square().sum(-1, keepdim=True)
        squares = squares + between.square() * (count * more / (count + more))
        mean = mean + between * (more / (count + more))
        count += more
    return (h - mean) * (squares / h.shape[-1]).add(eps).rsqrt()


def _in_lanes(h: torch.Tensor, eps: float) -> torch.Tensor:
    """Add both sums in eight lanes, then across the lanes."""

    def mean(values: torch.Tensor) -> torch.Tensor:
        lanes = [values[..., lane::8].sum(-1, keepdim=True) for lane in range(8)]
        return sum(lanes[1:], lanes[0]) / values.shape[-1]

    centred = h - mean(h)
    return centred / mean(centred.square()).add(eps).sqrt()


VARIANTS = {"sums in lanes": _affine(_in_lanes), "mean and deviation joined by blocks": _affine(_running)}


def vendor(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    """Compute y [batch, hidden_size] with torch.nn.functional.layer_norm, which keeps fp32 inside."""
    import torch

    return torch.nn.functional.layer_norm(x, (x.shape[-1],), weight, bias, eps)


LAYERNORM = Operation(
    name="layernorm",
    summary="layer normalisation of each row, scaled by a weight and shifted by a bias",
    axes=("batch", "hidden_size"),
    inputs=(
        TensorSpec(name="x", axes=("batch", "hidden_size")),
        TensorSpec(name="weight", axes=("hidden_size",)),
        TensorSpec(name="bias", axes=("hidden_size",)),
    ),
    scalars={"eps": 1e-5},
    outputs=(TensorSpec(name="y", axes=("batch", "hidden_size")),),
    dtypes=("fp32", "fp16", "bf16"),
    signature="layernorm(x, weight, bias, eps) -> y",
    reference=layernorm,
    oracle=oracle,
    numerics=(
        "Let d = x - mean and r = 1 / sqrt(variance + eps). The mean sums n = hidden_size terms and errs by "
        "about u_acc (sqrt(n) + 8) mean|x| (blocked summation). That moves y by as much times r |weight|. The "
        "variance is a mean of n positive squares, with a relative error of about u_acc (sqrt(n) + 8), which "
        "the root halves. What the mean's error does to the variance is of second order. The last addition "
        "may cancel: its terms' sizes count. So S = (|d| + mean|x|) r |weight| + |bias|. The variance must be "
        "formed from d: mean(x^2) - mean^2 errs by u_acc mean(x)^2, which is all of it where the mean is 1000 "
        "deviations. Rounded once: one u_out."
    ),
    bytes_moved=_bytes_moved,
    flops=_flops,
    workloads=(
        {"batch": 1, "hidden_size": 4096},
        {"batch": 16, "hidden_size": 4096},
        {"batch": 64, "hidden_size": 1600},
        {"batch": 512, "hidden_size": 768},
        {"batch": 2048, "hidden_size": 4096},
    ),
    row_axis="batch",
    reduced_axis="hidden_size",
    specials="as_reference",
    relations=(
        RowsIndependent(),
        RowsPermuted(),
        Scaled(inputs={"weight": 1, "bias": 1}, outputs={"y": 1}),
        Scaled(inputs={"x": 1}, scalars={"eps": 2}, outputs={"y": 0}),
    ),
    mutants=MUTANTS,
    variants=VARIANTS,
    vendor=vendor,
)

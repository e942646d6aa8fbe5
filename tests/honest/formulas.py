"""Honest and biased ways to compute one operation, in plain torch: the judge's allowances are measured on them."""

from collections.abc import Callable

import torch

from forge.domain.tensors import DType
from forge.lab.inputs.draw import draw
from forge.lab.judge import Aggregate, Sample, aggregate
from forge.operations import find_operation

OPERATION = find_operation("fused_add_rmsnorm")
EPS = 1e-6
Formula = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, float], tuple[torch.Tensor, torch.Tensor]]


def by_scale(scale: Callable[[torch.Tensor, float], torch.Tensor]) -> Formula:
    """Everything in fp32, rounded once, with the rows' scales computed in some way."""

    def formula(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float):  # type: ignore[no-untyped-def]
        h = x.float() + residual.float()
        return (h * scale(h, eps) * weight.float()).to(x.dtype), h.to(x.dtype)

    return formula


def one_after_the_other(h: torch.Tensor, eps: float) -> torch.Tensor:
    total = torch.zeros(h.shape[0])
    for column in h.t().contiguous():
        total = total + column * column
    return (total / h.shape[1] + eps)[:, None].rsqrt()


def running_mean(h: torch.Tensor, eps: float) -> torch.Tensor:
    mean = torch.zeros(h.shape[0])
    for count, column in enumerate(h.t().contiguous(), 1):
        mean = mean + (column * column - mean) * (1.0 / count)
    return (mean + eps)[:, None].rsqrt()


def pairwise(h: torch.Tensor, eps: float) -> torch.Tensor:
    squares = h.square()
    while squares.shape[1] > 1:
        if squares.shape[1] % 2:
            squares = torch.cat([squares, torch.zeros(squares.shape[0], 1)], 1)
        squares = squares[:, ::2] + squares[:, 1::2]
    return (squares / h.shape[1] + eps).rsqrt()


def in_double(h: torch.Tensor, eps: float) -> torch.Tensor:
    return (h.double().square().mean(-1, keepdim=True) + eps).rsqrt().float()


def newton(h: torch.Tensor, eps: float) -> torch.Tensor:
    """An approximation of 12 bits and one Newton step, which ends below the root wherever it starts."""
    mean = h.square().mean(-1, keepdim=True) + eps
    significand, exponent = torch.frexp(mean.double().rsqrt())
    start = torch.ldexp((significand * 4096).floor() / 4096 + 2.0**-13, exponent).float()
    return start * (1.5 - 0.5 * mean * start * start)


def root_and_division(h: torch.Tensor, eps: float) -> torch.Tensor:
    return 1 / (h.square().mean(-1, keepdim=True) + eps).sqrt()


def times_a_reciprocal(h: torch.Tensor, eps: float) -> torch.Tensor:
    return (h.square().sum(-1, keepdim=True) * torch.tensor(1.0 / h.shape[1]) + eps).rsqrt()


def vector_norm(h: torch.Tensor, eps: float) -> torch.Tensor:
    return (torch.linalg.vector_norm(h, dim=-1, keepdim=True).square() / h.shape[1] + eps).rsqrt()


def rounded_before_the_weight(x, residual, weight, eps):  # type: ignore[no-untyped-def]
    h = x.float() + residual.float()
    return (h * h.square().mean(-1, keepdim=True).add(eps).rsqrt()).to(x.dtype) * weight, h.to(x.dtype)


def from_the_rounded_sum(x, residual, weight, eps):  # type: ignore[no-untyped-def]
    h = x + residual
    wide = h.float()
    return (wide * wide.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()).to(x.dtype), h


def rounded_three_times(x, residual, weight, eps):  # type: ignore[no-untyped-def]
    h = x + residual
    wide = h.float()
    return (wide * wide.square().mean(-1, keepdim=True).add(eps).rsqrt()).to(x.dtype) * weight, h


def library(x, residual, weight, eps):  # type: ignore[no-untyped-def]
    h = x + residual
    return torch.nn.functional.rms_norm(h, (x.shape[-1],), weight, eps), h


def weight_first(x, residual, weight, eps):  # type: ignore[no-untyped-def]
    h = x.float() + residual.float()
    scale = h.square().mean(-1, keepdim=True).add(eps).rsqrt()
    return (weight.float() * scale * h).to(x.dtype), h.to(x.dtype)


HONEST: dict[str, Formula] = {
    "one after the other": by_scale(one_after_the_other),
    "running mean": by_scale(running_mean),
    "pairwise": by_scale(pairwise),
    "in fp64": by_scale(in_double),
    "Newton's step": by_scale(newton),
    "root and division": by_scale(root_and_division),
    "times a reciprocal": by_scale(times_a_reciprocal),
    "vector norm": by_scale(vector_norm),
    "weight first": weight_first,
    "rounded before the weight": rounded_before_the_weight,
    "from the rounded sum": from_the_rounded_sum,
    "rounded three times": rounded_three_times,
    "torch's own": library,
}


def cut(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Fp32 to a smaller type by leaving bits out: towards zero."""
    mask = {torch.bfloat16: ~0xFFFF, torch.float16: ~0x1FFF}[dtype]
    return (tensor.view(torch.int32) & mask).view(torch.float32).to(dtype)


def towards_zero(x, residual, weight, eps):  # type: ignore[no-untyped-def]
    h = x.float() + residual.float()
    y = h * h.square().mean(-1, keepdim=True).add(eps).rsqrt() * weight.float()
    return (y * (1 - 2.0**-21), h) if x.dtype == torch.float32 else (cut(y, x.dtype), h.to(x.dtype))


def downwards(x, residual, weight, eps):  # type: ignore[no-untyped-def]
    y, h = towards_zero(x, residual, weight, eps)
    if x.dtype == torch.float32:
        return weight_first(x, residual, weight, eps)[0] - y.abs() * 2.0**-21, h
    lower = torch.nextafter(y, torch.full_like(y, -torch.inf))
    return torch.where(y < 0, lower, y), h


BIASED: dict[str, Formula] = {"towards zero": towards_zero, "downwards": downwards}


def taken_together(
    formula: Formula, dtype: DType, rows: int, width: int, *, seed: int
) -> tuple[Aggregate | None, ...]:
    """Both outputs' errors over a normal and a uniform draw, as the gate takes them."""
    samples: tuple[list[Sample], list[Sample]] = ([], [])
    for number, kind in enumerate(("normal", "uniform")):
        inputs = draw(
            OPERATION,
            {"batch": rows, "hidden_size": width},
            dtype,
            kind,  # type: ignore[arg-type]
            seed=2 * seed + number,
        )
        parts = zip(
            formula(*inputs, EPS),
            OPERATION.oracle(*inputs, EPS),
            OPERATION.reference(*inputs, EPS),
            strict=True,
        )
        for taken, (got, expected, baseline) in zip(samples, parts, strict=True):
            taken.append(Sample(got, expected, baseline))
    return tuple(aggregate(taken, dtype=dtype) for taken in samples)

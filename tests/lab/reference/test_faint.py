"""Operands so small that an eps decides show a wrong one; kernels that round as at usual values stay right there."""

import math
import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
import torch

from forge.domain.tensors import DType
from forge.lab.calls.judged_outputs import judged_outputs
from forge.lab.inputs.draw import draw
from forge.lab.judge.reference_call import outputs_of
from forge.lab.observed import Case, Observed
from forge.lab.reference.binding import answered
from forge.lab.reference.faint import FAINT_KINDS
from forge.lab.reference.infer import Inferred
from tests.lab.reference.references import ask, job_against

pytestmark = pytest.mark.usefixtures("walls")
Kernel = Callable[..., torch.Tensor]
FILE = """
import torch
import torch.nn.functional as F


def kernel({arguments}):
    return {formula}


def get_inputs():
    return [{drawn}]
"""
DRAWS = 6
UNIT = FILE.format(arguments="x", formula="F.normalize(x, dim=-1)", drawn="torch.randn(16, 128)")
CHANNELS = FILE.format(arguments="x", formula="F.normalize(x, dim=1)", drawn="torch.randn(4, 32, 6, 6)")
RMS = FILE.format(
    arguments="x, w", formula="F.rms_norm(x, (128,), w, 1e-6)", drawn="torch.randn(16, 128), torch.randn(128)"
)
LAYER = FILE.format(
    arguments="x, w, b",
    formula="F.layer_norm(x, (128,), w, b)",
    drawn="torch.randn(16, 128), torch.randn(128), torch.randn(128)",
)
BATCHES = FILE.format(
    arguments="x, w, b",
    formula="F.batch_norm(x, None, None, w, b, training=True)",
    drawn="torch.randn(32, 24), torch.randn(24), torch.randn(24)",
)
ELU = FILE.format(arguments="x", formula="F.elu(x)", drawn="torch.randn(16, 128)")
TANH = FILE.format(arguments="x", formula="torch.tanh(x)", drawn="torch.randn(16, 128)")
LOG = FILE.format(arguments="x", formula="torch.log1p(x)", drawn="torch.rand(16, 128)")
DIFFERENCE = FILE.format(
    arguments="x, y", formula="torch.mean((x - y) ** 2, -1)", drawn="torch.randn(16, 128), torch.randn(16, 128)"
)
COSINES = FILE.format(
    arguments="x, y", formula="F.cosine_similarity(x, y, dim=-1)", drawn="torch.randn(16, 128), torch.randn(16, 128)"
)
GELU = FILE.format(arguments="x", formula="F.gelu(x)", drawn="torch.randn(16, 128)")
GATED = FILE.format(
    arguments="x, w", formula="F.silu(x @ w) * x", drawn="torch.randn(16, 64), torch.randn(64, 64) / 8"
)


def unit(eps: float, dim: int = -1) -> Kernel:
    return lambda x: x * (1 / x.square().sum(dim, keepdim=True).sqrt().clamp(min=eps))


def rms_norm(eps: float) -> Kernel:
    return lambda x, w: x * torch.rsqrt(x.square().sum(-1, keepdim=True) * (1 / 128) + eps) * w


def layer_norm(eps: float) -> Kernel:
    def kernel(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        centered = x - x.sum(-1, keepdim=True) * (1 / 128)
        return centered * torch.rsqrt(centered.square().sum(-1, keepdim=True) * (1 / 128) + eps) * w + b

    return kernel


def batch_norm(eps: float) -> Kernel:
    def kernel(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        centered = x - x.mean(0)
        return centered * torch.rsqrt(centered.square().mean(0) + eps) * w + b

    return kernel


def elu_by_an_exponential(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x > 0, x, x.exp() - 1)


def tanh_by_a_sigmoid(x: torch.Tensor) -> torch.Tensor:
    return 2 * torch.sigmoid(2 * x) - 1


def log_of_one_more(x: torch.Tensor) -> torch.Tensor:
    return torch.log(1 + x)


def difference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x - y).square().sum(-1) * (1 / 128)


def cosines(eps: float) -> Kernel:
    def kernel(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        sizes = (one.square().sum(-1).sqrt().clamp(min=eps) for one in (x, y))
        return (x * y).sum(-1) / math.prod(sizes)

    return kernel


def gelu_by_an_error_function(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * (1 + torch.erf(x * 0.7071067811865476))


def gated(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = x @ w
    return y / (1 + (-y).exp()) * x


@cache
def frozen(source: str, dtype: DType) -> Inferred:
    return ask(source, dtype=dtype)


def refused_kinds(source: str, kernel: Kernel, dtype: DType) -> set[str]:
    """Faint kinds of values at which a kernel that computes in fp32 is refused."""
    rng, found = random.Random(), set()
    inferred = frozen(source, dtype)
    with answered(replace(job_against(inferred, "", "kernel"), held_out=())) as job:
        operation = job.operation
        for kind in sorted(FAINT_KINDS.intersection(inferred.contract.kinds)) * DRAWS:
            seed = rng.getrandbits(40)
            inputs = draw(operation, job.shape, dtype, kind, seed=seed)
            got = kernel(*(one.float() for one in inputs)).to(inputs[0].dtype).contiguous()
            results = judged_outputs(
                operation,
                Observed(Case(job.shape, kind, seed, inputs, ()), (got,), 0),
                operation.oracle(*inputs),
                outputs_of(operation, operation.reference, inputs, ()),
                dtype=dtype,
                policy=job.policy,
            )
            if not all(one.within for one in results):
                found.add(kind)
    return found


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize(
    ("source", "kernel"),
    [
        *((UNIT, unit(1e-12)), (CHANNELS, unit(1e-12, 1)), (RMS, rms_norm(1e-6)), (LAYER, layer_norm(1e-5))),
        *((BATCHES, batch_norm(1e-5)), (ELU, elu_by_an_exponential), (TANH, tanh_by_a_sigmoid)),
        *((LOG, log_of_one_more), (DIFFERENCE, difference), (GELU, gelu_by_an_error_function), (GATED, gated)),
        (COSINES, cosines(1e-8)),
    ],
)
def test_a_right_kernel_is_right_at_faint_values(source: str, kernel: Kernel, dtype: DType) -> None:
    assert refused_kinds(source, kernel, dtype) == set()


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize(
    ("source", "kernel", "kind"),
    [
        *((UNIT, unit(1e-8), "tiny"), (UNIT, unit(0.0), "tiny"), (CHANNELS, unit(1e-10, 1), "tiny")),
        *((RMS, rms_norm(1e-5), "rows_apart"), (RMS, rms_norm(0.0), "rows_apart")),
        *((LAYER, layer_norm(1e-6), "rows_apart"), (LAYER, layer_norm(1e-12), "rows_apart")),
        *((BATCHES, batch_norm(1e-6), "rows_apart"), (COSINES, cosines(1e-12), "tiny")),
    ],
)
def test_a_wrong_eps_shows(source: str, kernel: Kernel, kind: str, dtype: DType) -> None:
    assert kind in refused_kinds(source, kernel, dtype)


def test_a_reference_without_fp64_is_asked_nothing_faint() -> None:
    named = FILE.format(arguments="x", formula="(x >= 0).float()", drawn="torch.randn(16, 128)")
    inferred = frozen(named, "fp32")
    assert not inferred.contract.wide
    assert not FAINT_KINDS.intersection(inferred.contract.kinds)
    with answered(replace(job_against(inferred, "", "kernel"), held_out=())) as job:
        (x,) = draw(job.operation, job.shape, "fp32", "normal", seed=1)
        rules = job.operation.oracle(x)
        assert job.operation.reconsidered is not None
        assert len(job.operation.reconsidered(rules, x)) == 1

"""References whose operators round to 16 bits: all elements together tell wrong answers from right ones."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
import torch
import torch.nn.functional as F

from forge.domain.input_kind import InputKind
from forge.domain.tensors import DType
from forge.lab.calls.judged_outputs import judged_outputs
from forge.lab.inputs.draw import draw
from forge.lab.judge import JudgedOutput
from forge.lab.judge.reference_call import outputs_of
from forge.lab.observed import Case, Observed
from forge.lab.reference.binding import answered
from forge.lab.reference.infer import Inferred
from tests.lab.reference.references import ask, job_against

pytestmark = pytest.mark.usefixtures("walls")
Kernel = Callable[..., torch.Tensor]
FILE = """
import torch


def kernel({arguments}):
    return {formula}


def get_inputs():
    return [{drawn}]
"""
GELU = FILE.format(
    arguments="x",
    formula="0.5 * x * (1.0 + torch.tanh(0.7978845608028654 * (x + 0.044715 * torch.pow(x, 3.0))))",
    drawn="torch.randn(64, 256)",
)
NORM = FILE.format(
    arguments="x, w",
    formula="x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w",
    drawn="torch.randn(32, 256), torch.randn(256)",
)
GATED = FILE.format(
    arguments="x, y", formula="torch.sigmoid(x) * x * y", drawn="torch.randn(32, 128), torch.randn(32, 128)"
)
ATTENTION = FILE.format(
    arguments="q, k, v",
    formula="torch.softmax(q @ k.transpose(-1, -2) / 32 ** 0.5, dim=-1) @ v",
    drawn="*torch.randn(3, 2, 50, 32)",
)
QUANTISED = FILE.format(
    arguments="x",
    formula="torch.round(x / (x.abs().amax(-1, keepdim=True) / 127)) * (x.abs().amax(-1, keepdim=True) / 127)",
    drawn="torch.randn(32, 128)",
)
NEARLY_ONE = FILE.format(arguments="x", formula="x * 1.375 + 1.0", drawn="torch.randn(32, 128)")


def gelu(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x, approximate="tanh")


def gelu_in_steps(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))


def gelu_of_a_sigmoid(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(1.702 * x)


def norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, (256,), w, 1e-6)


def norm_in_steps(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w


def norm_without_the_smallest_column(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return norm(x, w.where(w.abs() > w.abs().min(), 0.0))


def norm_without_the_last_square(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt(x[:, :-1].pow(2).sum(-1, keepdim=True) / 256 + 1e-6) * w


def gated(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.silu(x) * y


def gated_in_steps(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * y * torch.sigmoid(x)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v)


def attention_of_scaled_queries(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax((q * 32**-0.5) @ k.transpose(-1, -2), -1) @ v


def attention_in_a_quarter_of_the_bits(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    q, k, v = (one.to(torch.float8_e4m3fn).to(one.dtype) for one in (q, k, v))
    return attention(q, k, v)


def floored(x: torch.Tensor) -> torch.Tensor:
    step = x.abs().amax(-1, keepdim=True) / 127
    return torch.floor(x / step) * step


def rounded(x: torch.Tensor) -> torch.Tensor:
    step = x.abs().amax(-1, keepdim=True) / 127
    return torch.round(x / step) * step


def a_per_cent_more(kernel: Kernel) -> Kernel:
    return lambda *inputs: kernel(*(one.float() for one in inputs)) * 1.01


def inside_fp32(kernel: Kernel) -> Kernel:
    return lambda *inputs: kernel(*(one.float() for one in inputs))


@cache
def frozen(source: str, dtype: DType) -> Inferred:
    return ask(source, dtype=dtype)


def judged(source: str, dtype: DType, kernel: Kernel, kind: InputKind, *, seeds: int = 12) -> list[JudgedOutput]:
    """The verdict on one output in each of some draws."""
    found = []
    with answered(replace(job_against(frozen(source, dtype), "", "kernel"), held_out=())) as job:
        operation = job.operation
        for seed in range(seeds):
            inputs = draw(operation, job.shape, dtype, kind, seed=seed)
            observed = Observed(
                Case(job.shape, kind, seed, inputs, ()), (kernel(*inputs).to(inputs[0].dtype).contiguous(),), 0
            )
            found += judged_outputs(
                operation,
                observed,
                operation.oracle(*inputs),
                outputs_of(operation, operation.reference, inputs, ()),
                dtype=dtype,
                policy=job.policy,
            )
    return found


@pytest.mark.parametrize("source", [GELU, NORM, GATED, ATTENTION, QUANTISED])
@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_a_chain_of_operators_in_16_bits_is_no_weak_task(source: str, dtype: DType) -> None:
    admission = frozen(source, dtype).admission
    assert (admission.survivors, admission.refused) == ((), ())


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
@pytest.mark.parametrize(
    ("source", "kernel"),
    [
        *((GELU, inside_fp32(gelu)), (GELU, gelu), (GELU, gelu_in_steps)),
        *((NORM, inside_fp32(norm)), (NORM, norm), (NORM, norm_in_steps)),
        *((GATED, inside_fp32(gated)), (GATED, gated), (GATED, gated_in_steps)),
        *((ATTENTION, inside_fp32(attention)), (ATTENTION, attention_of_scaled_queries)),
        (QUANTISED, inside_fp32(rounded)),
    ],
)
def test_a_right_kernel_is_right_however_often_it_rounds(source: str, kernel: Kernel, dtype: DType) -> None:
    assert [one.together for one in judged(source, dtype, kernel, "normal") if not one.within] == []


@pytest.mark.parametrize(
    ("source", "kernel"),
    [
        *((one, a_per_cent_more(right)) for one, right in ((GELU, gelu), (NORM, norm), (GATED, gated))),
        *((ATTENTION, a_per_cent_more(attention)), (ATTENTION, attention_in_a_quarter_of_the_bits)),
        *((NORM, norm_without_the_smallest_column), (QUANTISED, inside_fp32(floored))),
    ],
)
def test_a_wrong_kernel_is_refused_for_all_its_elements(source: str, kernel: Kernel) -> None:
    verdicts = judged(source, "bf16", kernel, "normal")
    refused = [one for one in verdicts if not one.within]
    assert len(refused) > len(verdicts) / 2
    assert all(abs(one.got - one.expected) > one.allowed_error for one in refused)


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_one_number_left_out_of_a_sum_shows_where_it_is_large(dtype: DType) -> None:
    for kernel, right in ((norm, True), (norm_without_the_last_square, False)):
        assert {one.within for one in judged(NORM, dtype, inside_fp32(kernel), "outliers")} == {right}
    assert all(one.within for one in judged(NORM, "bf16", inside_fp32(norm_without_the_last_square), "normal"))


def test_a_refusal_says_what_is_wrong_with_all_elements() -> None:
    assert {
        one.together.partition(" -0")[0] for one in judged(QUANTISED, "bf16", inside_fp32(floored), "normal")
    } == {"all elements together are off by"}


def test_a_formula_that_is_only_near_is_refused_in_fp16() -> None:
    assert not any(one.within for one in judged(GELU, "fp16", inside_fp32(gelu_of_a_sigmoid), "normal"))


def test_equal_values_are_rounded_alike_and_not_judged_together() -> None:
    def a_rounding_more(x: torch.Tensor) -> torch.Tensor:
        return (x.float() * 1.375 + 1.0) * (1 + 2.2 * 2.0**-8)

    assert all(one.within for one in judged(NEARLY_ONE, "bf16", a_rounding_more, "constant"))
    assert not any(one.within for one in judged(NEARLY_ONE, "bf16", a_rounding_more, "normal"))


def test_the_places_of_numbers_that_tie_in_16_bits_make_no_unfair_task() -> None:
    router = FILE.format(
        arguments="x, w",
        formula="torch.topk(torch.softmax(x @ w, -1), 2)",
        drawn="torch.randn(64, 96), torch.randn(96, 16) / 10",
    )
    admission = frozen(router, "bf16").admission
    assert (admission.survivors, admission.refused) == ((), ())

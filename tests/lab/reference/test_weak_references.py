"""Known wrong answers at a bound that was measured: where they pass, the task says so."""

import pytest
import torch

from forge.domain.evidence import Admission
from forge.domain.policy import Policy
from forge.domain.tensors import UNIT_ROUNDOFF, DType
from forge.lab.judge.lower_precision import coarse
from forge.lab.reference.admission import AdmissionDraw, admit
from forge.lab.reference.allowed_error import least_error
from forge.lab.reference.answers import relative_error
from forge.lab.reference.binding import expectation
from forge.operations.own import own_operation
from tests.lab.reference.references import square_contract

HUGE = 1e7
CONTRACT = square_contract(16)


def admitted(factors: torch.Tensor) -> Admission:
    """Of a reference that multiplies by `factors` [16, 16]."""
    generator = torch.Generator().manual_seed(1)
    drawn = [torch.randn(16, 16, generator=generator) for _ in range(3)]
    (result,) = CONTRACT.results
    questions = tuple(
        AdmissionDraw(
            inputs=(x,),
            reference=(x * factors,),
            expected=(expectation(CONTRACT, result, x.double() * factors.double(), Policy()),),
            earlier=(other * factors,),
            other_weights=(x * factors,),
            coarse=(coarse(x, "fp32") * factors,),
        )
        for x, other in zip(drawn, [*drawn[1:], drawn[0]], strict=True)
    )
    return admit(own_operation(CONTRACT, b""), questions, "fp32", Policy())


def test_where_all_values_are_of_one_size_every_wrong_answer_is_refused() -> None:
    admission = admitted(torch.ones(16, 16))
    assert least_error(CONTRACT) == 2.0**-21
    assert admission.survivors == ()
    assert admission.refused == ()
    assert admission.mutants >= 10


def test_a_relu_is_no_weak_task() -> None:
    assert admitted((torch.arange(256).reshape(16, 16) % 3 == 0).float()).survivors == ()


def test_a_bound_by_a_few_huge_values_shows_by_the_smaller_half() -> None:
    halves = torch.cat([torch.ones(16, 9), torch.full((16, 7), HUGE)], -1)
    assert "output: the smaller half left out" in admitted(halves).survivors


@pytest.mark.parametrize("axis", [0, 1])
def test_one_small_row_or_column_that_nobody_would_miss_shows(axis: int) -> None:
    factors = torch.ones(16, 16)
    factors.select(axis, 5).fill_(1 / HUGE)
    assert admitted(factors).survivors == ("output: the smallest row, column or channel left out",)


@pytest.mark.parametrize(("dtype", "torch_dtype"), [("fp16", torch.float16), ("bf16", torch.bfloat16)])
def test_the_rounding_of_the_result_is_no_error_of_a_smaller_type(dtype: DType, torch_dtype: torch.dtype) -> None:
    exact = torch.randn(64, 64, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    assert relative_error(exact.to(torch_dtype), exact, dtype=dtype) == 0
    twice = (exact.to(torch_dtype) * 1.5).to(torch_dtype)
    assert 0 < relative_error(twice, exact * 1.5, dtype=dtype) < 4 * UNIT_ROUNDOFF[dtype]
    assert relative_error(exact.float(), exact, dtype="fp32") > 0


def test_what_is_too_small_for_the_type_is_not_missed() -> None:
    factors = torch.ones(16, 16)
    factors[5] = 2.0**-130
    assert admitted(factors).survivors == ()

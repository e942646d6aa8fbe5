"""A quick look accepts no call that the whole rule refuses, whatever the kind of its values."""

from typing import get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from forge.domain.input_kind import InputKind
from forge.domain.policy import Policy
from forge.domain.tensors import DTYPES, DType
from forge.lab.calls.judged_outputs import SLOWLY_JUDGED, all_plainly_right, judged_outputs
from forge.lab.definitions import definition_of
from forge.lab.inputs.draw import draw
from forge.lab.judge.reference_call import outputs_of
from forge.lab.observed import Case, Observed
from forge.operations import find_operation
from forge.operations.operation import Expectation, Operation

SHAPES = {
    "fused_add_rmsnorm": {"batch": 5, "hidden_size": 96},
    "softmax": {"batch": 5, "hidden_size": 96},
    "silu_mul": {"batch": 5, "hidden_size": 96},
    "matmul": {"m": 5, "k": 64, "n": 24},
    "cross_entropy": {"tokens": 5, "vocab_size": 96},
}
POLICY = Policy()


def kinds_of(operation: Operation) -> list[InputKind]:
    return [one for one in definition_of(operation).kinds(get_args(InputKind)) if one not in SLOWLY_JUDGED]


def with_errors(output: torch.Tensor, relative: float, seed: int) -> torch.Tensor:
    """The output with errors of up to `relative` of each element, so that some lie beyond any bound."""
    noise = torch.rand(output.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2 - 1
    return (output.double() * (1 + relative * noise)).to(output.dtype)


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=60)
@given(data=st.data(), dtype=st.sampled_from(DTYPES), seed=st.integers(0, 2**31))
def test_what_is_plainly_right_is_right(name: str, data: st.DataObject, dtype: DType, seed: int) -> None:
    operation = find_operation(name)
    kind = data.draw(st.sampled_from(kinds_of(operation)))
    relative = 2.0 ** -data.draw(st.integers(4, 26))
    shape, scalars = SHAPES[name], tuple(operation.scalars.values())
    inputs = draw(operation, shape, dtype, kind, seed=seed)
    rules = operation.oracle(*inputs, *scalars)
    baselines = outputs_of(operation, operation.reference, inputs, scalars)
    outputs = tuple(
        with_errors(baseline, relative, seed) if isinstance(rule, Expectation) else baseline
        for rule, baseline in zip(rules, baselines, strict=True)
    )
    observed = Observed(Case(shape, kind, seed, inputs, scalars), outputs, 0)
    in_full = judged_outputs(operation, observed, rules, baselines, dtype=dtype, policy=POLICY)
    if all_plainly_right(operation, observed, rules, dtype=dtype, policy=POLICY):
        assert all(one.within for one in in_full), (kind, dtype, relative)


@pytest.mark.parametrize("name", SHAPES)
def test_a_reference_is_plainly_right_and_a_wrong_answer_is_not(name: str) -> None:
    operation = find_operation(name)
    shape, scalars = SHAPES[name], tuple(operation.scalars.values())
    inputs = draw(operation, shape, "fp32", "normal", seed=1)
    rules, outputs = operation.oracle(*inputs, *scalars), outputs_of(operation, operation.reference, inputs, scalars)
    for relative, expected in ((0.0, True), (1e-2, False)):
        given = tuple(with_errors(one, relative, seed=2) for one in outputs)
        observed = Observed(Case(shape, "normal", 1, inputs, scalars), given, 0)
        assert all_plainly_right(operation, observed, rules, dtype="fp32", policy=POLICY) is expected

"""A weak reference file is refused with a step that makes it a task."""

import pytest

from forge.domain.tensors import DType
from forge.errors import WeakTask
from forge.pipeline.weak_reference import require_strong
from tests.lab.reference.references import ask

pytestmark = pytest.mark.usefixtures("walls")
LOSS = """
import torch
import torch.nn.functional as F


def loss(a, b):
    return {formula}


def get_inputs():
    return [torch.randn({sizes}), torch.randn({sizes})]
"""
SQUARES = LOSS.format(formula="torch.mean((a - b) ** 2)", sizes="64, 128")
COSINES = LOSS.format(formula="torch.mean(1 - F.cosine_similarity(a, b, dim=1))", sizes="16, 512")
OF_ROWS = LOSS.format(formula="1 - F.cosine_similarity(a, b, dim=1)", sizes="16, 512")


@pytest.mark.parametrize(
    ("source", "dtype", "why", "step", "instead", "then"),
    [
        (SQUARES, "bf16", "in bf16 its own errors count as 0.00098", "--dtype fp32", SQUARES, "fp32"),
        (
            COSINES,
            "fp32",
            "one number for all rows hides an error in one of them",
            "the value of each row",
            OF_ROWS,
            "fp32",
        ),
    ],
)
def test_a_weak_file_is_refused_with_a_step_that_makes_it_a_task(
    source: str, dtype: DType, why: str, step: str, instead: str, then: DType
) -> None:
    with pytest.raises(WeakTask, match=r"output: .*expected none") as refused:
        require_strong(ask(source, dtype=dtype))
    assert why in refused.value.message
    assert step in (refused.value.hint or "")
    require_strong(ask(instead, dtype=then))

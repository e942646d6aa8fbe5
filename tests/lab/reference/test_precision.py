"""A lower precision that is right where thousands of errors cancel is refused where a few terms are summed."""

from forge.lab.reference import infer
from forge.lab.reference.answers import Answers
from forge.lab.reference.precision import FEW_TERMS, with_precision
from forge.sandbox.isolation_here import isolation
from tests.lab.reference.references import POLICY, known

LOWER = "output: one precision lower"
LONG_SUMS = """
import torch


def long_sums(x, w):
    return x @ w


def get_inputs():
    return [torch.rand(64, 2**15), torch.rand(2**15, 8)]
"""


def test_what_passes_at_the_files_own_values_is_tried_at_few_nonzero_ones() -> None:
    found = known(LONG_SUMS)
    assert FEW_TERMS in found.contract.kinds
    assert found.admission.survivors == ()


def test_what_survives_for_another_reason_is_kept() -> None:
    found = known(LONG_SUMS)
    left = found.admission.model_copy(update={"survivors": ("output: zeros", LOWER)})
    answers = Answers(
        found.contract, found.source, policy=POLICY, isolation=isolation(), threads=1, arena_bytes=2**28
    )
    with answers:
        tried = with_precision(left, answers, found.source, infer.SEED, POLICY)
    assert tried.survivors == ("output: zeros",)
    assert tried.killed == left.killed + 1

"""A kernel that is right near the file's own values alone is refused: further away, beside zero, at other weights."""

from pathlib import Path

import pytest

from forge.domain.input_kind import InputKind
from forge.domain.verdict import Accepted, Rejected
from forge.executor.local import LocalExecutor
from tests.lab.reference.references import job_against, known

pytestmark = [pytest.mark.usefixtures("walls", "short_series")]
FILE = """
import torch
import torch.nn.functional as F


def kernel(x):
    return ANSWER


def get_inputs():
    return [torch.randn(16, 64)]
"""
LAYER = "F.layer_norm(x, (64,))"
ONE_PASS = "(x - x.mean(1, True)) * ((x * x).mean(1, True) - x.mean(1, True) ** 2 + 1e-5).rsqrt()"
TWO_PASSES = "(x - x.mean(1, True)) * ((x - x.mean(1, True)) ** 2).mean(1, True).add(1e-5).rsqrt()"
CASES: tuple[tuple[str, str, str, InputKind], ...] = (
    ("x.amax(1)", "x.flip(1).amax(1)", "x.amax(1).clamp(min=-1e4)", "very_far"),
    ("x.clamp(-1e4, 1e4) * 2", "x.clamp(-1e4, 1e4) + x.clamp(-1e4, 1e4)", "x * 2", "very_far"),
    (LAYER, TWO_PASSES, ONE_PASS, "beside_zero"),
)
EMBEDDING = """
import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(20, 8, padding_idx=0)

    def forward(self, ids):
        return self.table(ids)


def get_inputs():
    return [torch.randint(0, 20, (6, 9))]
"""


def verdict(folder: Path, source: str, candidate: str, entry: str = "kernel") -> Accepted | Rejected:
    job = job_against(known(source), candidate, entry)
    return LocalExecutor(folder / "lock").examine(job, progress=lambda _: None).verdict


@pytest.mark.parametrize(("reference", "right", "wrong", "kind"), CASES)
def test_values_further_away_and_beside_zero_are_asked(
    reference: str, right: str, wrong: str, kind: InputKind, tmp_path: Path
) -> None:
    source = FILE.replace("ANSWER", reference)
    assert kind in known(source).contract.kinds
    assert verdict(tmp_path, source, FILE.replace("ANSWER", right)) == Accepted()
    refused = verdict(tmp_path, source, FILE.replace("ANSWER", wrong))
    assert isinstance(refused, Rejected)
    assert refused.reason.code == "INCORRECT_NUMERICAL"


def test_a_row_of_zeros_among_new_weights_is_asked_with_other_numbers(tmp_path: Path) -> None:
    candidate = EMBEDDING.replace("class Model", "class ModelNew")
    assert verdict(tmp_path, EMBEDDING, candidate, "ModelNew") == Accepted()
    wrong = candidate.replace("self.table(ids)", "self.table(ids) * (ids != 0)[..., None]")
    refused = verdict(tmp_path, EMBEDDING, wrong, "ModelNew")
    assert isinstance(refused, Rejected)
    # two questions that differ in the row of zeros alone get one answer
    assert refused.reason.code in {"INCORRECT_NUMERICAL", "REPLAYED_OUTPUT"}

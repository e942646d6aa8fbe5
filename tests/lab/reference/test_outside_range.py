"""A kernel that is right in the range of `torch.rand` alone is refused, unless a user declared that range."""

from pathlib import Path

import pytest

from forge.domain.input_kind import InputKind
from forge.domain.verdict import Accepted, Rejected
from forge.executor.local import LocalExecutor
from forge.lab.reference.describe import Declared
from tests.lab.reference.references import ask, job_against

pytestmark = [pytest.mark.usefixtures("walls", "short_series")]
FILE = """
import torch
import torch.nn.functional as F


def kernel(x, y):
    return ANSWER


def get_inputs():
    return [torch.rand(16, 48), torch.rand(16, 48)]
"""
NEAR: InputKind = "outside_range"
FAR: InputKind = "far_outside_range"
SHIFTED: InputKind = "shifted_range"
CASES = (
    ("torch.relu(x) + y", "x + y", NEAR),
    ("F.smooth_l1_loss(x, y, reduction='none')", "0.5 * (x - y) ** 2", NEAR),
    ("(x + y).amax(1)", "torch.cat((x + y, torch.zeros(len(x), 1)), 1).amax(1)", FAR),
    ("x.abs().sum(1) + y[:, 0]", "x.sum(1) + y[:, 0]", NEAR),
    ("F.hardtanh(x * y, -20.0, 20.0)", "x * y", FAR),
    (
        "F.layer_norm(x, (48,)) + y",
        "(x - (m := x.mean(1, keepdim=True))) / torch.sqrt((x * x).mean(1, keepdim=True) - m * m + 1e-5) + y",
        SHIFTED,
    ),
)
ONE = Declared(name="x", dtype="float32", sizes=(16, 48), low=0.0, high=1.0)


def verdict(folder: Path, right: str, kernel: str, *declared: Declared) -> Accepted | Rejected:
    found = ask(FILE.replace("ANSWER", right), operands=declared)
    job = job_against(found, FILE.replace("ANSWER", kernel), "kernel")
    return LocalExecutor(folder / "lock").examine(job, progress=lambda _: None).verdict


@pytest.mark.parametrize(("right", "wrong", "kind"), CASES)
def test_a_range_of_torch_rand_is_no_promise(right: str, wrong: str, kind: InputKind, tmp_path: Path) -> None:
    assert kind in ask(FILE.replace("ANSWER", right)).contract.kinds
    assert verdict(tmp_path, right, right) == Accepted()
    refused = verdict(tmp_path, right, wrong)
    assert isinstance(refused, Rejected)
    assert refused.reason.code in ("INCORRECT_NUMERICAL", "NON_FINITE")


def test_a_declared_range_is_kept(tmp_path: Path) -> None:
    right, wrong, _ = CASES[0]
    assert verdict(tmp_path, right, wrong, ONE) == Accepted()


def test_an_operand_of_zeros_is_asked_other_numbers(tmp_path: Path) -> None:
    source = FILE.replace("torch.rand(16, 48)]", "torch.zeros(16, 48)]").replace("ANSWER", "torch.tanh(x + y)")
    assert NEAR in ask(source).contract.kinds
    job = job_against(ask(source), source.replace("x + y", "x"), "kernel")
    refused = LocalExecutor(tmp_path / "lock").examine(job, progress=lambda _: None).verdict
    assert isinstance(refused, Rejected)


def test_where_a_reference_has_no_answer_it_isnt_asked() -> None:
    kinds = ask(FILE.replace("ANSWER", "x.sqrt() * y")).contract.kinds
    assert not {NEAR, FAR} & set(kinds)

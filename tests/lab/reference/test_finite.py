"""Answers must be finite where the reference's are, also at values at which it errs too much to judge by."""

from pathlib import Path

import pytest

from forge.domain.verdict import Accepted, Rejected
from forge.lab.reference.describe import Declared
from forge.sandbox.isolation import Walls
from tests.lab.reference.references import ask
from tests.lab.reference.test_ends import verdict_on

pytestmark = pytest.mark.usefixtures("short_series")

HEAD = "import torch\nimport torch.nn.functional as F\n"
INPUTS = "def get_inputs():\n    return [torch.{draw}]\n"
PROJECTED = """
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(64, 48)

    def forward(self, x):
        return {body}

"""
NO_INIT = "\ndef get_init_inputs():\n    return []\n"
FUNCTION = "def act({x}):\n    return {body}\n\n"
SOFTMAX, SIGMOID, TANH = "torch.softmax({x}, -1)", "torch.sigmoid({x})", "torch.tanh({x})"
WITHOUT_MAXIMUM = "(e := torch.exp({x})) / e.sum(-1, keepdim=True)"
WITH_ONE_MAXIMUM = "(e := torch.exp((y := {x}) - y.max())) / e.sum(-1, keepdim=True)"
OF_POWERS = "(e := torch.exp({x})) / (1 + e)"
OF_SQUARES = "((e := torch.exp(2 * {x})) - 1) / (e + 1)"
LINEAR = "F.linear(x, weight, bias)"


def function(body: str, draw: str) -> str:
    return HEAD + FUNCTION.format(x="x", body=body.format(x="x")) + INPUTS.format(draw=draw)


def projected(body: str, draw: str) -> str:
    return HEAD + PROJECTED.format(body=body.format(x="self.linear(x)")) + INPUTS.format(draw=draw) + NO_INIT


def answer(body: str) -> str:
    return HEAD + FUNCTION.format(x="x", body=body.format(x="x"))


def answer_projected(body: str) -> str:
    return HEAD + FUNCTION.format(x="x, weight, bias", body=body.format(x=LINEAR))


@pytest.mark.parametrize(
    ("right", "wrong"), [(SOFTMAX, WITHOUT_MAXIMUM), (SIGMOID, OF_POWERS)], ids=["softmax", "sigmoid"]
)
def test_powers_of_e_that_overflow_are_refused_where_a_file_draws_rand(
    right: str, wrong: str, tmp_path: Path, walls: Walls
) -> None:
    found = ask(function(right, "rand(16, 64)"))
    verdict = verdict_on(found, answer(wrong), tmp_path)
    assert isinstance(verdict, Rejected)
    assert verdict.reason.code == "NON_FINITE"
    assert verdict_on(found, answer(right), tmp_path) == Accepted()


@pytest.mark.parametrize(
    ("right", "wrong", "draw"),
    [
        (SOFTMAX, WITHOUT_MAXIMUM, "rand"),
        (SOFTMAX, WITH_ONE_MAXIMUM, "rand"),
        (SIGMOID, OF_POWERS, "randn"),
        (TANH, OF_SQUARES, "randn"),
    ],
    ids=["softmax", "one maximum", "sigmoid", "tanh"],
)
def test_and_behind_a_layer_whose_rounding_a_saturated_answer_follows(
    right: str, wrong: str, draw: str, tmp_path: Path, walls: Walls
) -> None:
    found = ask(projected(right, f"{draw}(16, 64)"))
    assert found.contract.finite_kinds
    assert not set(found.contract.finite_kinds) & set(found.contract.kinds)
    verdict = verdict_on(found, answer_projected(wrong), tmp_path)
    assert isinstance(verdict, Rejected)
    assert verdict.reason.code == "NON_FINITE"
    assert verdict_on(found, answer_projected(right), tmp_path) == Accepted()


def test_a_softmax_that_clips_what_would_overflow_is_wrong_at_large_numbers(tmp_path: Path, walls: Walls) -> None:
    """Numbers on a grid leave a softmax that is one, zero or evenly shared, so that answers can be judged."""
    found = ask(function(SOFTMAX, "rand(16, 64)"))
    assert "overflowing" in found.contract.kinds
    verdict = verdict_on(found, answer(WITHOUT_MAXIMUM.replace("{x}", "{x}.clamp(-80, 80)")), tmp_path)
    assert isinstance(verdict, Rejected)
    assert verdict.reason.code == "INCORRECT_NUMERICAL"


def test_rounding_decides_about_finite_answers_there(tmp_path: Path, walls: Walls) -> None:
    """A norm of one value is zero or what rounding leaves of it, which is a million times more."""
    reference = HEAD + FUNCTION.format(
        x="x", body="F.layer_norm(x @ torch.linspace(-1, 1, 3072).view(64, 48), (48,))"
    )
    found = ask(reference + INPUTS.format(draw="rand(16, 64)"))
    in_other_order = "F.layer_norm((x.flip(1) @ torch.linspace(-1, 1, 3072).view(64, 48).flip(0)), (48,))"
    assert verdict_on(found, answer(in_other_order), tmp_path) == Accepted()
    assert found.contract.finite_kinds


def test_a_range_that_the_user_declares_is_kept(tmp_path: Path, walls: Walls) -> None:
    declared = (Declared(name="x", dtype="float32", sizes=(16, 64), low=0.0, high=1.0),)
    found = ask(function(SOFTMAX, "rand(16, 64)"), operands=declared)
    assert not {"overflowing", "shifted_range"} & {*found.contract.kinds, *found.contract.finite_kinds}
    assert verdict_on(found, answer(WITHOUT_MAXIMUM), tmp_path) == Accepted()


def test_sums_of_whole_numbers_near_their_upper_end_are_asked(tmp_path: Path, walls: Walls) -> None:
    """Sums of products of bytes beyond 2^24 are odd there, and fp32 can't hold them."""
    source = HEAD + (
        "def product(a, b):\n    return a.int() @ b.int()\n\ndef get_inputs():\n"
        "    return [torch.randint(-128, 128, (16, 2048), dtype=torch.int8),"
        " torch.randint(-128, 128, (2048, 8), dtype=torch.int8)]\n"
    )
    found = ask(source)
    assert "near_highest" in found.contract.kinds
    in_floats = HEAD + "def product(a, b):\n    return (a.float() @ b.float()).int()\n"
    assert isinstance(verdict_on(found, in_floats, tmp_path), Rejected)
    assert verdict_on(found, in_floats.replace("float", "double"), tmp_path) == Accepted()


def test_matrices_whose_elimination_needs_pivots_are_asked(tmp_path: Path, walls: Walls) -> None:
    source = HEAD + "def inverse(a):\n    return torch.linalg.inv(a)\n\n" + INPUTS.format(draw="randn(64, 2, 2)")
    found = ask(source)
    assert "zero_diagonal" in {*found.contract.kinds, *found.contract.finite_kinds}
    without_pivots = HEAD + (
        "def inverse(a):\n    p, q, r, s = (a[:, i, j] for i in (0, 1) for j in (0, 1))\n    f = r / p\n"
        "    d = 1 / (s - f * q)\n    low = torch.stack((-f * d, d), -1)\n"
        "    up = torch.stack(((1 + q * f * d) / p, -q * d / p), -1)\n    return torch.stack((up, low), -2)\n"
    )
    verdict = verdict_on(found, without_pivots, tmp_path)
    assert isinstance(verdict, Rejected)
    assert verdict.reason.code == "NON_FINITE"
    assert verdict_on(found, HEAD + "def inverse(a):\n    return torch.linalg.inv(a)\n", tmp_path) == Accepted()

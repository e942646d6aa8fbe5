"""A reference may take arguments by name and return a dictionary; a candidate then does the same."""

from functools import cache
from pathlib import Path

import pytest

from forge.domain.own_operation import Constant
from forge.domain.verdict import Accepted, Rejected
from forge.executor.local import LocalExecutor
from forge.lab.reference.infer import Inferred
from forge.lab.verification import Examination
from forge.sandbox.isolation import Walls
from tests.lab.reference.references import ask, job_against

pytestmark = pytest.mark.usefixtures("short_series")

NAMED = """
import torch


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("shift", torch.linspace(0.5, 1.5, width))
        self.register_buffer("hidden", torch.full((width,), 3.0), persistent=False)

    def forward(self, x, *, mask, power=1):
        return {"masked": x * mask + self.hidden, "rows": [(x + self.shift) * power]}


def get_inputs():
    return {"mask": torch.rand(4, 8), "x": torch.randn(4, 8), "power": 2}


def get_init_inputs():
    return [8]
"""


@cache
def inferred() -> Inferred:
    return ask(NAMED)


def test_arguments_by_name_buffers_and_a_dictionary_are_inferred(walls: Walls) -> None:
    contract = inferred().contract
    assert [(one.name, one.keyword) for one in contract.arguments] == [("x", False), ("mask", True), ("power", True)]
    assert contract.arguments[2] == Constant(name="power", literal="2", keyword=True)
    assert [one.names for one in contract.weights] == [("shift",)]
    assert [one.key for one in contract.results] == ["masked", "rows.0"]
    assert "x, mask=, power=" in inferred().operation.signature


FUNCTION = """
def kernel(x, shift, *, mask, power):
    return {"masked": x * mask + 3.0, "rows": [(x + shift) * power]}
"""


def examined(kernel: str, folder: Path) -> Examination:
    job = job_against(inferred(), kernel, "kernel")
    return LocalExecutor(folder / "lock").examine(job, progress=lambda _: None)


def test_a_function_with_the_same_names_is_accepted(walls: Walls, tmp_path: Path) -> None:
    assert examined(FUNCTION, tmp_path).verdict == Accepted()


def test_other_keys_are_refused_and_named_in_the_log(walls: Walls, tmp_path: Path) -> None:
    found = examined(FUNCTION.replace('"masked":', '"mask":'), tmp_path)
    assert isinstance(found.verdict, Rejected)
    assert "the keys ['mask', 'rows.0'], expected ['masked', 'rows.0']" in found.log


PACKED = """
import torch


class Model(torch.nn.Module):
    def __init__(self, width, scale=1.0):
        super().__init__()
        self.linear = torch.nn.Linear(width, width)
        self.scale = scale

    def forward(self, x, caches, state):
        return self.linear(x) * self.scale + caches[0] * caches[1] + state["inner"][0] * state["times"]


def get_inputs():
    caches = [torch.randn(4, 8), torch.rand(4, 8)]
    return [torch.randn(4, 8), caches, {"inner": (torch.randn(4, 8),), "times": 3}]


def get_init_inputs():
    return [[8], {"scale": 2.0}]
"""
PACKED_FUNCTION = """
def kernel(x, caches, state, weight, bias):
    return (x @ weight.t() + bias) * 2.0 + caches[0] * caches[1] + state["inner"][0] * state["times"]
"""


@cache
def packed() -> Inferred:
    return ask(PACKED)


def test_lists_and_dictionaries_of_tensors_are_arguments(walls: Walls, tmp_path: Path) -> None:
    found = packed()
    contract = found.contract
    within = [(one.name, one.within) for one in contract.tensors]
    assert within == [("x", ""), ("caches_0", "caches"), ("caches_1", "caches"), ("state_0", "state")]
    literals = [one.literal for one in contract.arguments if isinstance(one, Constant)]
    assert literals == ["[..., ...]", "{'inner': (...,), 'times': 3}"]
    assert (contract.init, contract.init_named) == ("[8]", "{'scale': 2.0}")
    assert found.operation.signature == "Model(x, caches, state)"
    executor = LocalExecutor(tmp_path / "lock")
    job = job_against(found, PACKED_FUNCTION, "kernel")
    assert executor.examine(job, progress=lambda _: None).verdict == Accepted()
    swapped = job_against(found, PACKED_FUNCTION.replace("* caches[1]", "* caches[0]"), "kernel")
    assert isinstance(executor.examine(swapped, progress=lambda _: None).verdict, Rejected)


@pytest.mark.parametrize("change", ["caches.pop()", "caches[0] = caches[0] * 2", "state.clear()"])
def test_a_kernel_that_changes_its_callers_list_or_dictionary_is_refused(
    change: str, walls: Walls, tmp_path: Path
) -> None:
    spoiling = PACKED_FUNCTION.replace("return ", "y = ") + f"    {change}\n    return y\n"
    verdict = (
        LocalExecutor(tmp_path / "lock")
        .examine(job_against(packed(), spoiling, "kernel"), progress=lambda _: None)
        .verdict
    )
    assert isinstance(verdict, Rejected)
    assert verdict.reason.code == "INPUT_MUTATED"

"""The guest's side of a reference file, called here without a guest: the module is ours."""

import json
from pathlib import Path

import pytest
import torch

from forge.domain.own_operation import Constant, Contract, Normal, Operand, Result, Weight
from forge.guest import module
from forge.lab.definitions.contract_file import CONTRACT_FILE, contract_file
from forge.operations.own import own_operation


class Scaled(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(width, 2, bias=False)
        self.again = self.linear
        self.hidden = torch.ones(2)

    def forward(self, x: torch.Tensor, factor: float) -> list[torch.Tensor]:
        return [self.linear(x).T * factor, (x.sum(), self.hidden + torch.zeros(2))]  # type: ignore[list-item]


CONTRACT = Contract(
    slug="scaled",
    source_sha256="0" * 64,
    form="model",
    entry="Scaled",
    init="[3]",
    seed=7,
    dtype="fp32",
    arguments=(
        Operand(name="x", element=None, sizes=(4, 3), batched=True, drawn=Normal(mean=0.0, deviation=1.0)),
        Constant(name="factor", literal="2.5"),
    ),
    weights=(Weight(names=("linear.weight", "again.weight"), element=None, sizes=(2, 3), parameter=True),),
    results=(Result(element=None, sizes=(2, 4)), Result(element=None, sizes=()), Result(element=None, sizes=(2,))),
    batch=4,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / CONTRACT_FILE).write_bytes(contract_file(CONTRACT))
    return tmp_path


def test_weights_are_operands_under_all_of_their_names_and_outputs_come_flat(folder: Path) -> None:
    function = module.wrapped({}, Scaled, folder, wrap=module.MODULE)
    x, weight = torch.rand(4, 3), torch.rand(2, 3)
    first, total, hidden = function(x, weight)  # type: ignore[misc]
    assert torch.equal(first, ((x @ weight.T) * 2.5).T)
    assert total.shape == ()
    assert torch.equal(hidden, torch.ones(2))


def test_the_wide_form_computes_in_fp64_with_whatever_the_module_holds(folder: Path) -> None:
    function = module.wrapped({}, Scaled, folder, wrap=module.WIDE)
    outputs = function(torch.rand(4, 3), torch.rand(2, 3))
    assert [one.dtype for one in outputs] == [torch.float64] * 3  # type: ignore[attr-defined]
    assert torch.get_default_dtype() == torch.float32


def test_a_plain_function_takes_the_arguments_and_then_the_weights(folder: Path) -> None:
    def kernel(x: torch.Tensor, factor: float, weight: torch.Tensor) -> torch.Tensor:
        return x @ weight.T * factor

    function = module.wrapped({}, kernel, folder, wrap=module.MODULE)
    x, weight = torch.rand(4, 3), torch.rand(2, 3)
    (got,) = function(x, weight)  # type: ignore[misc]
    assert torch.equal(got, x @ weight.T * 2.5)


def test_a_module_with_another_state_dict_is_refused_with_the_names(folder: Path) -> None:
    class Other(torch.nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.dense = torch.nn.Linear(width, 2)

    with pytest.raises(module.OtherStateError, match=r"missing \['again.weight', 'linear.weight'\].*'dense.bias'"):
        module.wrapped({}, Other, folder, wrap=module.MODULE)


def test_the_state_under_a_seed_is_each_tensor_once(folder: Path) -> None:
    function = module.wrapped({}, Scaled, folder, wrap=module.STATE)
    one, same, other = (function(torch.tensor(seed)) for seed in (1, 1, 2))
    assert len(one) == 1  # type: ignore[arg-type]
    assert torch.equal(one[0], same[0])  # type: ignore[index]
    assert not torch.equal(one[0], other[0])  # type: ignore[index]


def test_a_guest_is_told_no_family_and_no_tolerance() -> None:
    told = json.loads(contract_file(CONTRACT))
    assert sorted(told) == ["arguments", "dtype", "init", "seed", "states"]


def test_a_contract_reads_as_an_operation_that_this_process_cant_run() -> None:
    operation = own_operation(CONTRACT, b"source")
    assert [spec.sizes({"batch": 9}) for spec in operation.inputs] == [(9, 3), (2, 3)]
    assert operation.axes == ("batch",)
    assert operation.bytes_moved({"batch": 4}, "fp32") == 4 * (8 + 1 + 2)
    with pytest.raises(AssertionError, match="never runs in this process"):
        operation.reference(torch.rand(4, 3))

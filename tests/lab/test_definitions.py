import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from forge.domain.own_operation import Contract, Generated, Normal, Operand, Uniform, Weight
from forge.lab.definitions import definition_of
from forge.lab.definitions.reference_file import FEWEST_KEPT, KEPT_BYTES
from forge.lab.gates import GATES, gates_for
from forge.lab.gates.scales import KINDS
from forge.lab.inputs.draw import draw
from forge.lab.observed import Case
from forge.operations import OPERATIONS, find_operation
from forge.operations.operation import Operation
from forge.operations.own import own_operation
from tests.lab.reference.references import square_contract

FORGE = Path(__file__).parents[2] / "forge"
PUBLIC = {"batch": 4}
RECORDED = {
    *("signature", "replay", "numerics", "leaks", "aliasing", "sizes", "scales", "state"),
    *("determinism", "endurance", "bounds", "mutation"),
}
"""Names of the gates that events of own operations hold; their order has changed since."""
SINCE = {"configurations", "domain"}
"""Names of the gates that were added since; a candidate without tuning and without a domain isn't asked by them."""


def contract() -> Contract:
    """Two arguments, of which the second has a structure, and two weights, of which the second is a buffer."""
    return square_contract(8).model_copy(
        update={
            "arguments": (
                Operand(name="x", element=None, sizes=(8, 8), drawn=Uniform(low=0.0, high=1.0)),
                Operand(name="mask", element=None, sizes=(8, 8), drawn=Generated(structure="rows have one sum")),
                Operand(name="y", element=None, sizes=(8, 8), drawn=Normal(mean=0.0, deviation=1.0)),
            ),
            "weights": (
                Weight(names=("linear.weight", "tied.weight"), element=None, sizes=(8, 8), parameter=True),
                Weight(names=("norm.count",), element=None, sizes=(8,), parameter=False),
            ),
            "kinds": ("zeros", "large"),
        }
    )


def own() -> Operation:
    return own_operation(contract(), b"")


def own_case(seed: int) -> Case:
    generator = torch.Generator().manual_seed(seed)
    sizes = ((8, 8), (8, 8), (8, 8), (8, 8), (8,))
    return Case(PUBLIC, "normal", seed, tuple(torch.rand(one, generator=generator) for one in sizes), ())


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=lambda one: one.name)
def test_an_operation_of_the_catalogue_is_asked_by_every_gate(operation: Operation) -> None:
    assert gates_for(definition_of(operation)) == GATES


def test_an_own_operation_is_asked_by_the_gates_that_its_events_name() -> None:
    assert {gate.name for gate in gates_for(definition_of(own()))} == RECORDED | SINCE


def test_an_own_operation_is_asked_at_its_public_shape_and_a_catalogue_one_at_any() -> None:
    wanted = {"batch": 1}, {"batch": 9}
    assert definition_of(own()).shapes(PUBLIC, *wanted) == (PUBLIC,)
    assert definition_of(find_operation("softmax")).shapes(PUBLIC, *wanted) == wanted


def test_an_own_operation_gets_normal_values_and_the_kinds_that_its_contract_names() -> None:
    assert set(definition_of(own()).kinds(("normal", "uniform", *KINDS))) == {"normal", "zeros", "large"}
    assert definition_of(find_operation("softmax")).kinds(KINDS) == KINDS


@pytest.mark.parametrize(("call_bytes", "kept"), [(0, 33), (KEPT_BYTES // 8, 8), (KEPT_BYTES, FEWEST_KEPT)])
def test_an_own_operation_keeps_few_large_outputs_and_many_small_ones(call_bytes: int, kept: int) -> None:
    assert definition_of(own()).kept_calls(33, call_bytes) == kept
    assert definition_of(find_operation("softmax")).kept_calls(33, call_bytes) == 33


def test_a_reference_file_runs_only_in_a_guest_with_its_contract_beside_it() -> None:
    definition = definition_of(own())
    assert not definition.runs_here
    assert list(definition.files) == ["contract.json"]
    assert definition.state_names == ("linear.weight", "tied.weight", "norm.count")
    assert (definition.reference().wrap, definition.reference(compiled=True).wrap) == ("module", "module_compile")
    assert definition_of(find_operation("softmax")).reference(compiled=True).wrap == "compile"


@pytest.mark.parametrize("seed", range(8))
def test_related_questions_never_move_values_of_a_tensor_with_a_structure(seed: int) -> None:
    cases = [own_case(2 * seed), own_case(2 * seed + 1)]
    drawn = iter(cases)
    questions = definition_of(own()).related(lambda: next(drawn), random.Random(seed))
    for question in questions:
        for still in contract().still:
            assert any(question.inputs[still] is case.inputs[still] for case in cases)
    assert questions[-1] is cases[0]


def test_each_operand_of_a_reference_file_is_once_the_only_new_one() -> None:
    first, other = own_case(0), own_case(1)
    drawn = iter((first, other))
    questions = definition_of(own()).related(lambda: next(drawn), random.Random(0))
    changed = [
        tuple(place for place, one in enumerate(question.inputs) if one is not first.inputs[place])
        for question in questions
        if all(one in (a, b) for one, a, b in zip(map(id, question.inputs), ids(first), ids(other), strict=True))
    ]
    assert {(0,), (1,), (2,), (3, 4)} <= set(changed)


def ids(case: Case) -> list[int]:
    return [id(one) for one in case.inputs]


@pytest.mark.parametrize("name", ["rmsnorm", "grouped_matmul", "sampling"])
def test_each_operand_of_a_catalogue_operation_changes_in_some_related_question(name: str) -> None:
    operation = find_operation(name)
    shape = dict.fromkeys(operation.axes, 5) | {operation.reduced_axis: 32}
    dtype, scalars = operation.dtypes[0], tuple(operation.scalars.values())

    def case(seed: int) -> Case:
        return Case(shape, "normal", seed, draw(operation, shape, dtype, "normal", seed=seed), scalars)

    seeds = iter(range(9))
    questions = definition_of(operation).related(lambda: case(next(seeds)), random.Random(1))
    first = questions[-1]
    for place, spec in enumerate(operation.inputs):
        related = [one for one in questions if one.seed == first.seed]
        assert any(not torch.equal(one.inputs[place], first.inputs[place]) for one in related), spec.name


def test_few_files_of_the_lab_ask_whether_an_operation_is_own() -> None:
    asking = re.compile(r"\bown is (?:not )?None")
    found = {
        str(path.relative_to(FORGE)) for path in (FORGE / "lab").rglob("*.py") if asking.search(path.read_text())
    }
    # in trial.py the word names an admission; a job is sent with its reference file
    asks = {"lab/definitions/__init__.py", "lab/reference/binding.py"}
    assert found == {*asks, "lab/reference/trial.py", "lab/sent_job.py"}


def test_a_bound_operation_keeps_its_definition() -> None:
    assert definition_of(replace(own(), reference=lambda: None)).wrap == "module"

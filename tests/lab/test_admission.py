"""A task opens only if its own inputs and bound tell known wrong answers from known right ones."""

import dataclasses
import random
import subprocess
import sys

import pytest

from benchmarks.mutant_scores import score
from forge.domain.policy import Policy
from forge.errors import WeakTask
from forge.lab.admission.mutants import PUBLIC_ELEMENTS, _questions, admit
from forge.operations import OPERATIONS
from forge.operations.scores import mutant_scores
from forge.pipeline.create import create
from tests.pipeline.making import POLICY, request

SHAPES = ({"batch": 16, "hidden_size": 4096}, {"batch": 1, "hidden_size": 1}, {"batch": 7, "hidden_size": 33})


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_every_operation_is_fit_to_judge_by_in_every_dtype(name: str) -> None:
    operation = OPERATIONS[name]
    for dtype in operation.dtypes:
        for sizes in SHAPES:
            shape = {operation.row_axis: sizes["batch"], operation.reduced_axis: sizes["hidden_size"]}
            shape = {**dict.fromkeys(operation.axes, 4), **shape}
            found = admit(operation, shape, dtype, Policy())
            assert found.survivors == ()
            assert found.refused == ()
            assert found.killed == found.mutants >= 20
            assert found.honest >= 2
    # tried at the last of these shapes: what is written down is what was found here
    assert mutant_scores()[name] == score(operation, Policy())


def test_every_operation_has_a_score_that_can_be_read_without_torch() -> None:
    assert set(mutant_scores()) == set(OPERATIONS)
    reading = (
        "import sys; from forge.operations.scores import mutant_scores as m; m(); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", reading], check=True)


def test_a_large_public_shape_is_asked_at_as_many_rows_as_are_quick() -> None:
    """Measured: opening a task with this shape takes less than half a second."""
    questions = tuple(_questions(OPERATIONS["fused_add_rmsnorm"], {"batch": 2048, "hidden_size": 4096}, "bf16"))
    sizes_bytes = [sum(one.nbytes for one in (*asked.inputs, *asked.reference)) for asked in questions]
    assert PUBLIC_ELEMENTS < max(sizes_bytes) <= 8 * PUBLIC_ELEMENTS
    assert len(questions) < 30


def test_a_wrong_answer_that_is_right_after_all_survives_and_is_named() -> None:
    operation = OPERATIONS["rmsnorm"]
    harmless = dataclasses.replace(operation, mutants={"nothing at all": operation.reference})
    assert admit(harmless, SHAPES[0], "fp32", Policy()).survivors == ("nothing at all",)


def test_a_right_answer_that_isnt_right_is_refused_and_named() -> None:
    operation = OPERATIONS["rmsnorm"]
    unfair = dataclasses.replace(
        operation, variants={"no weight": lambda x, w, eps: operation.reference(x, w * 0, eps)}
    )
    assert admit(unfair, SHAPES[0], "fp32", Policy()).refused == ("no weight",)


def test_a_bound_that_is_too_wide_lets_mutants_through() -> None:
    """With a scale of the whole row instead of the element, small errors anywhere pass."""
    operation = OPERATIONS["rmsnorm"]

    def loose(x, weight, eps):
        (found,) = operation.oracle(x, weight, eps)
        return (dataclasses.replace(found, scale=found.scale * 0 + 1e12),)

    found = admit(dataclasses.replace(operation, oracle=loose), SHAPES[0], "fp32", Policy())
    assert "one precision lower" in found.survivors
    assert found.killed < found.mutants


def test_a_weak_task_isnt_created_and_the_refusal_names_what_would_pass() -> None:
    def weak(operation, shape, dtype, policy):
        return admit(
            dataclasses.replace(operation, mutants={"its own reference": operation.reference}), shape, dtype, policy
        )

    with pytest.raises(WeakTask, match="its own reference") as refused:
        create(request(), policy=POLICY, rng=random.Random(1), admit=weak)
    assert refused.value.exit_status == 1


def test_a_tried_task_records_its_score_and_an_untried_one_none() -> None:
    _, tried = create(request(), policy=POLICY, rng=random.Random(1), admit=admit)
    _, untried = create(request(), policy=POLICY, rng=random.Random(1))
    assert tried.events[0].admission.killed == tried.events[0].admission.mutants  # type: ignore[union-attr]
    assert untried.events[0].admission is None  # type: ignore[union-attr]  # a TaskCreated

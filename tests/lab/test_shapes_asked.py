"""Which shapes a gate asks.

What is asked in inference mode comes last: a workspace that is kept from there can't be written to outside it. An
interpreter is asked some of many held-out shapes.
"""

from contextlib import closing
from typing import cast

import pytest

from forge.lab.calls.asked_operation import AskedOperation
from forge.lab.calls.loaded_guest import LoadedGuest
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.gates import GATES, sizes, state
from forge.lab.gates.sizes import INTERPRETED_HELD_OUT
from forge.lab.gates.state import STATE
from forge.lab.runner import INTERPRETER, PROCESSOR, Runner
from forge.operations import find_operation
from forge.sandbox.arena import Arena
from forge.sandbox.session import Session
from tests.candidates import job_for

NAME = "fused_add_rmsnorm"


def test_nothing_is_asked_after_the_questions_of_inference_mode() -> None:
    assert GATES[-1] is STATE, "and its own last question is at other sizes"


@pytest.mark.parametrize(("runner", "count"), [(PROCESSOR, 40), (INTERPRETER, INTERPRETED_HELD_OUT)])
def test_an_interpreter_is_asked_some_of_many_held_out_shapes(runner: Runner, count: int) -> None:
    operation, job = find_operation(NAME), job_for("", language="torch", operation=NAME)
    held_out = tuple({"batch": 2, "hidden_size": size} for size in range(1, 41))
    asked = AskedOperation(
        operation=operation, shape=job.shape, dtype=job.dtype, policy=job.policy, runner=runner, held_out=held_out
    )
    with closing(Arena(2**20)) as arena:
        kernel = LoadedKernel(LoadedGuest(cast(Session, None), arena, NAME), asked, seed=1)
        chosen = sizes._held_out(kernel)
    assert len(chosen) == count
    assert all(shape in held_out for shape in chosen)


@pytest.mark.parametrize("seed", range(100))
def test_the_question_after_inference_mode_shares_no_size_with_those_inside(seed: int) -> None:
    operation, job = find_operation(NAME), job_for("", language="torch", operation=NAME)
    asked = AskedOperation(
        operation=operation, shape=job.shape, dtype=job.dtype, policy=job.policy, runner=PROCESSOR, held_out=()
    )
    with closing(Arena(2**26)) as arena:
        kernel = LoadedKernel(LoadedGuest(cast(Session, None), arena, NAME), asked, seed=seed)
        served = [kernel.shape, *state._served_shapes(kernel)]
        last = state._shape_outside(kernel, served)
        assert not state._shares_a_size(kernel, last, served)
    assert all(last[axis] != one[axis] for one in served for axis in ("batch", "hidden_size"))

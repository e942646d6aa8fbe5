"""Which shapes a gate asks.

What is asked in inference mode first isn't asked outside it later: a kept workspace can't be written to there. An
interpreter is asked some of many held-out shapes.
"""

from contextlib import closing
from typing import cast

import pytest

from forge.lab.calls.asked_operation import AskedOperation
from forge.lab.calls.loaded_guest import LoadedGuest
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.gates import bounds, sizes, state
from forge.lab.gates.sizes import INTERPRETED_HELD_OUT
from forge.lab.runner import INTERPRETER, PROCESSOR, Runner
from forge.operations import find_operation
from forge.sandbox.arena import Arena
from forge.sandbox.session import Session
from tests.candidates import job_for

NAME = "fused_add_rmsnorm"
SEEDS = range(150)


def test_no_short_shape_of_inference_mode_comes_beside_closed_pages() -> None:
    operation, job = find_operation(NAME), job_for("", language="torch", operation=NAME)
    asked = AskedOperation(operation=operation, shape=job.shape, dtype=job.dtype, policy=job.policy, runner=PROCESSOR)
    served, closed = set(), set()
    with closing(Arena(2**20)) as arena:
        for seed in SEEDS:
            kernel = LoadedKernel(LoadedGuest(cast(Session, None), arena, NAME), asked, seed=seed)
            served.add(tuple(state._served_shapes(kernel)[0].values()))
            closed |= {tuple(shape.values()) for shape in bounds._shapes(kernel)}
    assert len(served) > 20
    assert not served & closed


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

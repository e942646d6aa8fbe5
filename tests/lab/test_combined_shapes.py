"""Shapes of the gate `combinations` stay within their budgets, and those that programs use come often."""

from contextlib import closing
from typing import cast

import pytest

from forge.domain.policy import Policy
from forge.lab.calls.asked_operation import AskedOperation
from forge.lab.calls.loaded_guest import LoadedGuest
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.gates.combined_shapes import BUDGETS, INTERPRETED_BUDGET, INTERPRETED_ROWS, TILE, CombinedShapes
from forge.lab.inputs.shape_budget import costs_of
from forge.lab.runner import INTERPRETER, PROCESSOR, Runner
from forge.operations import OPERATIONS
from forge.sandbox.arena import Arena
from forge.sandbox.session import Session

DRAWS = 200


def drawn(name: str, runner: Runner) -> list[dict[str, int]]:
    operation = OPERATIONS[name]
    shape = {**dict.fromkeys(operation.axes, 3), operation.row_axis: 4, operation.reduced_axis: 64}
    asked = AskedOperation(
        operation=operation, shape=shape, dtype=operation.dtypes[0], policy=Policy(), runner=runner, held_out=()
    )
    with closing(Arena(2**20)) as arena:
        shapes = CombinedShapes(LoadedKernel(LoadedGuest(cast(Session, None), arena, name), asked, seed=1))
        return [dict(shapes.draw()) for _ in range(DRAWS)]


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_shape_is_within_a_budget_and_some_need_the_largest(name: str) -> None:
    operation, most = OPERATIONS[name], BUDGETS[-1]
    costs = [costs_of(operation, shape) for shape in drawn(name, PROCESSOR)]
    assert all(elements <= most[0] and flops <= most[1] for elements, flops in costs)
    assert any(4 * elements >= most[0] or 4 * flops >= most[1] for elements, flops in costs)
    few = drawn(name, INTERPRETER)
    assert max(shape[operation.row_axis] for shape in few) <= INTERPRETED_ROWS
    assert all(costs_of(operation, shape)[0] <= INTERPRETED_BUDGET[0] for shape in few)


def test_one_row_whole_tiles_and_usual_heads_come_often() -> None:
    matrices = drawn("matmul", PROCESSOR)
    assert sum(shape["m"] == 1 for shape in matrices) >= DRAWS // 20
    assert sum(all(size % TILE == 0 and size for size in shape.values()) for shape in matrices) >= DRAWS // 20
    caches = drawn("attention_decode", PROCESSOR)
    assert sum(shape["head_dim"] in (64, 128) for shape in caches) >= DRAWS // 10
    assert sum(shape["head_dim"] in (64, 128) and shape["group"] in range(2, 9) for shape in caches) >= DRAWS // 40

"""Shapes with long axes stay within their limits, and those of large operands come for every operation."""

from contextlib import closing
from typing import cast

import pytest

from forge.domain.policy import Policy
from forge.lab.calls.asked_operation import AskedOperation
from forge.lab.calls.loaded_guest import LoadedGuest
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.gates.long_pairs import (
    MOST_LARGE_ELEMENTS,
    MOST_LARGE_FLOPS,
    MOST_VOCABULARY_ELEMENTS,
    VOCABULARY,
    long_pairs,
)
from forge.lab.inputs.shape_budget import costs_of, largest_operand
from forge.lab.runner import INTERPRETER, PROCESSOR, Runner
from forge.operations import OPERATIONS
from forge.sandbox.arena import Arena
from forge.sandbox.session import Session


def asked(name: str, runner: Runner = PROCESSOR, *, seed: int = 1) -> list[dict[str, int]]:
    operation = OPERATIONS[name]
    shape = {**dict.fromkeys(operation.axes, 64), operation.row_axis: 4, operation.reduced_axis: 64}
    told = AskedOperation(
        operation=operation, shape=shape, dtype=operation.dtypes[0], policy=Policy(), runner=runner, held_out=()
    )
    with closing(Arena(2**29)) as arena:
        return [
            dict(one)
            for one in long_pairs(LoadedKernel(LoadedGuest(cast(Session, None), arena, name), told, seed=seed))
        ]


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_shape_is_affordable_and_a_wide_row_comes_with_several_rows(name: str) -> None:
    operation, shapes = OPERATIONS[name], asked(name)
    larger = [shape for shape in shapes if largest_operand(operation, shape) > MOST_LARGE_ELEMENTS]
    assert all(shape[operation.reduced_axis] >= VOCABULARY[1][0] for shape in larger)
    assert len(larger) <= len(operation.free_axes)
    assert all(largest_operand(operation, shape) <= MOST_VOCABULARY_ELEMENTS for shape in larger)
    assert all(costs_of(operation, shape)[1] <= MOST_LARGE_FLOPS for shape in shapes)
    assert any(shape[operation.row_axis] >= 4 and shape[operation.reduced_axis] > 4096 for shape in shapes)
    assert asked(name, INTERPRETER) == []


def test_listed_heads_come_beside_a_few_requests_and_beside_a_prompt() -> None:
    decode, prefill = asked("attention_decode", seed=2), asked("attention_prefill", seed=2)
    usual = {"kv_heads": 8, "group": 4, "head_dim": 128}
    assert any(usual.items() <= shape.items() and shape["tokens"] >= 4 and shape["kv_len"] > 256 for shape in decode)
    assert any(
        usual.items() <= shape.items() and shape["tokens"] >= 64 and shape["kv_len"] > 256 for shape in prefill
    )
    assert any(shape["head_dim"] >= 512 < shape["kv_len"] for shape in decode)


def test_large_weights_and_many_heads_come_beside_many_rows() -> None:
    products, heads = asked("matmul"), asked("rope")
    assert any(shape["m"] >= 17 and min(shape["k"], shape["n"]) > 2048 for shape in products)
    assert any(shape["tokens"] > 2048 and shape["heads"] > 8 for shape in heads)

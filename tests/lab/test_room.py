"""Gates stay affordable where operands grow with rows and width together, and are as they were where they don't."""

import pytest

from forge.lab.calls.load import arena_bytes
from forge.lab.gates.large_offsets import rows_drawn, rows_stand_for_all
from forge.lab.inputs.shape_budget import MOST_ASKED, MOST_DRAWN, affordable, largest_row, narrowed, rows_within
from forge.operations import OPERATIONS
from tests.candidates import job_for

CACHE = {"tokens": 8, "kv_len": 4096, "kv_heads": 8, "group": 4, "head_dim": 128}
MATRICES = [name for name in OPERATIONS if name != "attention_decode"]
EXPERTS = {"tokens": 64, "k": 1024, "n": 1024, "groups": 64}


def test_a_row_of_a_cache_is_all_its_positions() -> None:
    assert largest_row(OPERATIONS["attention_decode"], CACHE) == 4096 * 8 * 128
    assert largest_row(OPERATIONS["rmsnorm"], {"batch": 16, "hidden_size": 4096}) == 4096
    assert largest_row(OPERATIONS["matmul"], {"m": 16, "k": 64, "n": 4096}) == 4096


def test_a_cache_gets_few_rows_but_what_it_has_at_least() -> None:
    operation = OPERATIONS["attention_decode"]
    assert rows_within(operation, {**CACHE, "tokens": 1}, 64) == 4
    assert rows_within(operation, CACHE, 64) == 8
    assert rows_within(operation, {**CACHE, "kv_len": 16}, 64) == 64


def test_a_cache_is_narrowed_until_its_rows_are_quickly_drawn() -> None:
    operation = OPERATIONS["attention_decode"]
    found = narrowed(operation, {**CACHE, "tokens": 25})
    assert found == {**CACHE, "tokens": 25, "kv_len": 512}
    assert 25 * largest_row(operation, found) <= MOST_DRAWN


def test_so_many_rows_are_repeated_as_are_quickly_drawn() -> None:
    assert rows_drawn(OPERATIONS["rmsnorm"], {"batch": 16, "hidden_size": 4096}) == 1021
    assert rows_drawn(OPERATIONS["attention_decode"], CACHE) == 13
    assert rows_drawn(OPERATIONS["attention_decode"], {**CACHE, "kv_len": 32768}) == 13


@pytest.mark.parametrize("name", MATRICES)
def test_what_has_rows_of_a_matrix_is_asked_as_before(name: str) -> None:
    operation = OPERATIONS[name]
    for workload in operation.workloads:
        shape = {**workload, operation.row_axis: 25}
        assert narrowed(operation, shape) == shape
        assert rows_within(operation, workload, 64) == 64


def test_other_axes_are_halved_where_a_longer_one_would_take_too_much() -> None:
    operation = OPERATIONS["grouped_matmul"]
    found = affordable(operation, {**EXPERTS, "tokens": 3, "k": 8192}, EXPERTS)
    assert found == {"tokens": 3, "k": 8192, "n": 128, "groups": 64}
    assert found["k"] * found["n"] * found["groups"] <= MOST_ASKED


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_shape_that_costs_no_more_than_the_public_one_is_left_alone(name: str) -> None:
    operation = OPERATIONS[name]
    for public in operation.workloads:
        assert affordable(operation, public, public) == public
        fewer = {**public, operation.row_axis: 1}
        assert affordable(operation, fewer, public) == fewer


def test_a_few_rows_stand_for_all_where_rows_are_independent() -> None:
    """Past 2^31 bytes nothing is asked without a GPU, so this is all of that question that a CPU can be asked."""
    others = {name for name, operation in OPERATIONS.items() if not rows_stand_for_all(operation)}
    assert others == {"attention_prefill", "grouped_matmul", "kv_cache_append", "quantize_fp8_per_tensor"}


@pytest.mark.parametrize("rows", [16, 2**16])
def test_an_arena_holds_four_sets_of_a_call_whatever_its_size(rows: int) -> None:
    job = job_for("", language="torch", shape={"batch": rows, "hidden_size": 4096})
    assert arena_bytes(job) >= 4 * job.operation.operand_bytes(job.shape, job.dtype)

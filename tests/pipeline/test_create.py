"""A frozen task: what it is made of, and the shapes that no author is shown."""

import random

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.domain.digest import sha256
from forge.domain.task import HeldOut
from forge.errors import UsageError
from forge.events import TaskCreated
from forge.pipeline.create import HELD_OUT_SHAPES, USUAL_ROOM_BYTES, create
from tests.pipeline.making import POLICY, made, request

MOST_ELEMENTS = 2**22
LEAST_BUDGET = 2**14


def held_out(seed: int, **changes: object) -> HeldOut:
    task, outcome = create(request(**changes), policy=POLICY, rng=random.Random(seed))
    (blob,) = outcome.blobs
    assert sha256(blob) == task.held_out_sha256
    return HeldOut.model_validate(orjson.loads(blob))


@given(seed=st.integers(0, 2**32), batch=st.integers(1, 4000), hidden=st.integers(1, 4000))
def test_held_out_shapes_are_other_distinct_and_no_larger_than_the_public_one(
    seed: int, batch: int, hidden: int
) -> None:
    public = {"batch": batch, "hidden_size": hidden}
    shapes = held_out(seed, shape=f"batch={batch},hidden_size={hidden}").shapes
    assert len(shapes) == HELD_OUT_SHAPES
    assert len({tuple(sorted(shape.items())) for shape in shapes}) == HELD_OUT_SHAPES
    budget = max(LEAST_BUDGET, min(MOST_ELEMENTS, batch * hidden))
    for shape in shapes:
        assert shape.keys() == public.keys()
        assert shape != public
        assert shape["hidden_size"] % 2 == 1
        assert min(shape.values()) >= 1
        assert shape["batch"] * shape["hidden_size"] <= budget


@pytest.mark.parametrize("shape", ["batch=1,hidden_size=1", "batch=1,hidden_size=3", "batch=64,hidden_size=1"])
def test_the_smallest_shapes_are_never_held_out_as_themselves(shape: str) -> None:
    for seed in range(50):
        sizes = dict(part.split("=") for part in shape.split(","))
        assert {name: int(size) for name, size in sizes.items()} not in held_out(seed, shape=shape).shapes


def test_the_largest_workload_that_is_taken_has_held_out_shapes_of_a_judgeable_size() -> None:
    widest = POLICY.memory_limit_bytes // 8 // 8 // 3
    for shape in held_out(7, shape=f"batch=1,hidden_size={widest}").shapes:
        assert shape["batch"] * shape["hidden_size"] <= MOST_ELEMENTS
    with pytest.raises(UsageError, match=r"expected at most 1073741824 bytes, .* raise memory_limit_bytes"):
        made(shape=f"batch=1,hidden_size={widest + 1}")


def test_a_policy_with_more_memory_takes_larger_workloads_and_one_with_less_the_usual_ones() -> None:
    """The gate of 6,000 tokens of Llama 8B, and what every guest has room for."""
    gate = {"op": "silu_mul", "dtype": "bf16", "shape": "batch=6000,hidden_size=14336"}
    with pytest.raises(UsageError, match="raise memory_limit_bytes"):
        made(**gate)
    assert made(POLICY.model_copy(update={"memory_limit_bytes": 16 * 2**30}), **gate).shape["batch"] == 6000
    widest = (USUAL_ROOM_BYTES // 4 - 1) // 3
    small = POLICY.model_copy(update={"memory_limit_bytes": 2**28})
    assert made(small, shape=f"batch=1,hidden_size={widest}").shape["hidden_size"] == widest
    with pytest.raises(UsageError, match="expected at most 33554432"):
        made(small, shape=f"batch=1,hidden_size={widest + 2}")


LLAMA_8B = {
    "down": {"op": "matmul", "shape": "m=4096,n=4096,k=14336"},
    "decode": {"op": "attention_decode", "shape": "tokens=64,kv_len=8192,kv_heads=8,group=4,head_dim=128"},
}
"""Llama 8B's down projection of 4,096 tokens, and decode attention of 64 sequences of 8,192 positions."""


@pytest.mark.parametrize("name", LLAMA_8B)
def test_a_gpu_has_room_for_what_its_memory_holds(name: str) -> None:
    wanted = {**LLAMA_8B[name], "language": "triton", "dtype": "bf16"}
    assert made(gpu="h200", **wanted).target.gpu == "h200"
    larger = {**wanted, "shape": wanted["shape"].replace("k=14336", "k=1433600").replace("tokens=64", "tokens=640")}
    with pytest.raises(
        UsageError,
        match=r"expected at most 17625000000 bytes, an eighth of the memory of NVIDIA H200; .*a smaller shape",
    ):
        made(gpu="h200", **larger)


def test_a_processors_room_is_the_policys() -> None:
    with pytest.raises(UsageError, match=r"expected at most 1073741824 bytes, .* raise memory_limit_bytes"):
        made(language="cpp", gpu="cpu", dtype="bf16", **LLAMA_8B["decode"])


def test_the_same_randomness_gives_the_same_task_and_other_randomness_another() -> None:
    assert held_out(1) == held_out(1)
    assert held_out(1) != held_out(2)
    first, _ = create(request(), policy=POLICY, rng=random.Random(1))
    again, _ = create(request(), policy=POLICY, rng=random.Random(1))
    other, _ = create(request(), policy=POLICY, rng=random.Random(2))
    assert first.task_id == again.task_id
    assert first.family == other.family
    assert first.task_id != other.task_id


def test_a_task_records_the_digest_of_everything_it_is_judged_by() -> None:
    task = made()
    changed = made(POLICY.model_copy(update={"tolerance_accumulate_multiple": 3.0}))
    assert task.tolerance_sha256 != changed.tolerance_sha256
    assert task.policy_sha256 != changed.policy_sha256
    assert task.reference_sha256 == changed.reference_sha256
    assert made(op="fused_add_rmsnorm").reference_sha256 != task.reference_sha256
    _, outcome = create(request(), policy=POLICY, rng=random.Random(1))
    (event,) = outcome.events
    assert isinstance(event, TaskCreated)
    assert event.task_id == event.task.task_id


def test_a_task_without_a_wish_asks_for_the_policys_speedup() -> None:
    assert made().minimum_speedup == POLICY.minimum_speedup
    assert made(minimum_speedup=2.5).minimum_speedup == 2.5

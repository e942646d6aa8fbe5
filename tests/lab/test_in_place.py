"""Inputs that an operation updates: only those, only where it says, judged as they lie, and never returned."""

import dataclasses
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import get_args

import pytest
import torch

from forge.domain.candidate import Metadata
from forge.domain.tensors import LayoutName
from forge.errors import UsageError
from forge.lab.calls.artifact import staged_files
from forge.lab.calls.load import loaded, staged
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.calls.placement import Placement
from forge.lab.finding import Failed, Passed
from forge.lab.gates import GATES
from forge.lab.inputs.draw import draw
from forge.lab.job import Job
from forge.lab.judge import judge
from forge.lab.judge.reference_call import outputs_of
from forge.lab.timing.release_plan import Planned
from forge.lab.timing.slope import questions
from forge.operations import OPERATIONS, find_operation, reference_source
from forge.pipeline.create import create
from tests.candidates import job_for
from tests.pipeline.making import POLICY, request

OPERATION = find_operation("kv_cache_append")
SHAPE = {"tokens": 9, "slots": 12, "kv_heads": 2, "head_dim": 8}
GATE = {gate.name: gate for gate in GATES}
HONEST = reference_source(OPERATION)


def job(kernel: str) -> Job:
    made = job_for(kernel, language="torch", shape=SHAPE)
    described = {**json.loads(made.files["metadata.json"]), "op": OPERATION.name}
    return dataclasses.replace(
        made,
        operation=OPERATION,
        entry_point=OPERATION.name,
        metadata=Metadata.model_validate(described),
        files={**made.files, "metadata.json": json.dumps(described).encode()},
    )


@contextmanager
def asked(kernel: str) -> Iterator[LoadedKernel]:
    one = job(kernel)
    with (
        staged(one, staged_files(one, ()), {}) as stage,
        loaded(one, stage, one.limits(60.0), label="test") as loaded_kernel,
    ):
        assert isinstance(loaded_kernel, LoadedKernel)
        yield loaded_kernel


def test_an_honest_one_is_right_at_the_gates_that_watch_its_inputs() -> None:
    with asked(HONEST) as loaded_kernel:
        for name in ("signature", "aliasing", "mutation"):
            assert isinstance(GATE[name].examine(loaded_kernel), Passed)
        assert "but key_cache, value_cache" in GATE["mutation"].examine(loaded_kernel).threshold


WRONG = {
    "it writes to another input as well": (f"{HONEST}\n    key.zero_()\n", "INPUT_MUTATED", "the input 'key'"),
    "it returns what it updated": (
        f"{HONEST}\n    return key_cache, value_cache\n",
        "INCORRECT_SHAPE",
        "plain tuple",
    ),
    "it returns new caches and updates none": (
        "def kv_cache_append(key, value, key_cache, value_cache, slot_mapping):\n"
        "    return key_cache.clone(), value_cache.clone()\n",
        "INCORRECT_SHAPE",
        "plain tuple",
    ),
    "it writes one element where nothing was to be written": (
        f"{HONEST}\n    free = [s for s in range(key_cache.shape[0]) if s not in slot_mapping.tolist()]\n"
        "    value_cache[free[:1], -1, -1] = 0.0\n",
        "INCORRECT_NUMERICAL",
        "value_cache[",
    ),
    "it does nothing": ("def kv_cache_append(*operands):\n    pass\n", "INCORRECT_NUMERICAL", "key_cache["),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_one_is_refused_at_its_first_call_because(wrong: str) -> None:
    kernel, code, says = WRONG[wrong]
    with asked(kernel) as loaded_kernel:
        found = GATE["signature"].examine(loaded_kernel)
    assert isinstance(found, Failed)
    assert found.reason.code == code
    assert says in found.reason.message


BEHIND = {
    "it writes what it wrote before once more": (
        "replay",
        f"{HONEST}\n    for slot, old in kept:\n        key_cache[slot] = old\n"
        "    written = enumerate(slot_mapping.tolist())\n"
        "    kept[:] = [(slot, key[token].clone()) for token, slot in written if slot >= 0]\n\n\nkept = []\n",
        "INCORRECT_NUMERICAL",
    ),
    "it updates memory of its own and calls it the cache": (
        "signature",
        f"{HONEST}\nright = kv_cache_append\n\n\ndef kv_cache_append(key, value, key_cache, value_cache, slots):\n"
        "    own = key_cache.clone(), value_cache.clone()\n    right(key, value, *own, slots)\n"
        "    key_cache.set_(own[0])\n    value_cache.set_(own[1])\n",
        "INPUT_MUTATED",
    ),
    "it takes minus zero for zero": ("scales", f"{HONEST}\n    key_cache.add_(0.0)\n", "INCORRECT_NUMERICAL"),
    "an input is scratch and put back": (
        "mutation",
        f"{HONEST}\n    before = key.clone()\n    key.zero_()\n    key.copy_(before)\n",
        "INPUT_MUTATED",
    ),
}


@pytest.mark.parametrize("wrong", BEHIND)
def test_one_that_is_right_at_a_glance_is_refused_because(wrong: str) -> None:
    gate, kernel, code = BEHIND[wrong]
    with asked(kernel) as loaded_kernel:
        found = GATE[gate].examine(loaded_kernel)
    assert isinstance(found, Failed)
    assert found.reason.code == code


def test_a_counterexample_names_the_updated_input_as_what_it_got() -> None:
    with asked(WRONG["it does nothing"][0]) as loaded_kernel:
        found = GATE["signature"].examine(loaded_kernel)
    assert isinstance(found, Failed)
    assert found.counterexample is not None
    lines = found.counterexample.snippet.splitlines()
    assert lines[-3].startswith("kv_cache_append(*inputs")
    assert lines[-2] == "got = inputs[2]"


def test_calling_a_function_that_updates_leaves_the_callers_tensors_alone() -> None:
    inputs = draw(OPERATION, SHAPE, "fp32", "normal", seed=1)
    before = [tensor.clone() for tensor in inputs]
    keys, values = outputs_of(OPERATION, OPERATION.reference, inputs, ())
    assert all(bool((now == then).all()) for now, then in zip(inputs, before, strict=True))
    assert not keys.equal(before[2])
    assert not values.equal(before[3])


@pytest.mark.parametrize("bits", [float("nan"), -0.0, 1e-40])
def test_what_is_copied_is_copied_bit_by_bit(bits: float) -> None:
    inputs = list(draw(OPERATION, SHAPE, "fp32", "normal", seed=2))
    inputs[0][:] = bits
    outputs = outputs_of(OPERATION, OPERATION.reference, tuple(inputs), ())
    expected = OPERATION.oracle(*inputs)

    def within(got: torch.Tensor) -> bool:
        return judge(got, expected[0], outputs[0], dtype="fp32", policy=job(HONEST).policy).within

    assert within(outputs[0])
    assert not within(torch.where(outputs[0].isnan() | (outputs[0].abs() < 1e-30), 0.0, outputs[0]))


def test_only_outputs_are_updated_and_in_the_same_form() -> None:
    for operation in OPERATIONS.values():
        inputs = {spec.name: spec for spec in operation.inputs}
        outputs = {spec.name: spec for spec in operation.outputs}
        for name in operation.updates:
            assert inputs[name].model_copy(update={"values": outputs[name].values}) == outputs[name]
        assert {spec.name for spec in operation.returned} == set(outputs) - set(operation.updates)
        assert not set(inputs) & {spec.name for spec in operation.returned}


@pytest.mark.parametrize("layout", get_args(LayoutName))
def test_an_updated_input_has_no_byte_that_is_neither_judged_nor_in_a_red_zone(layout: LayoutName) -> None:
    for operation in OPERATIONS.values():
        for spec in operation.inputs:
            if spec.name in operation.updates:
                form = Placement(layout=layout).form(operation, spec, operation.workloads[0], "fp32")
                assert form.at(0).is_dense, (operation.name, spec.name)


def test_a_cache_that_the_lab_cant_lay_out_is_refused_though_little_of_it_is_touched() -> None:
    shape = "tokens=1,slots=1000000,kv_heads=8,head_dim=128"
    with pytest.raises(UsageError, match="bytes of operands"):
        create(request(op="kv_cache_append", shape=shape), policy=POLICY, rng=random.Random(1))


@pytest.mark.parametrize("dims", [{"kv_heads": 1, "head_dim": 17, "slots": 5}, {"head_dim": 1, "slots": 13}])
def test_an_honest_one_is_right_where_it_is_timed_whatever_its_size(dims: dict[str, int]) -> None:
    """What it updates chooses the next question, and may be no whole number of words."""
    with asked(HONEST) as loaded_kernel:
        loaded_kernel.shape = {**SHAPE, "tokens": 3, "kv_heads": 1, **dims}
        cases = questions(loaded_kernel, Planned(shown=32, asked=8), random.Random(1))
        observed = loaded_kernel.chain(cases, first=3, count=8, function=0)
        assert not isinstance(observed, Failed)
        assert loaded_kernel.first_wrong(observed) is None

"""What a plan may reach is what its call's operands take, to the byte."""

from dataclasses import replace

import pytest

from forge.lab.inputs.draw import draw
from forge.lab.judge.reference_call import outputs_of
from forge.lab.launch_plan.capture import bounds
from forge.operations import OPERATIONS, find_operation
from tests.candidates import job_for

MOST = 12


@pytest.mark.parametrize("op", sorted(OPERATIONS))
def test_a_plan_reaches_what_the_operands_take(op: str) -> None:
    operation = find_operation(op)
    shape = {axis: min(size, MOST) for axis, size in operation.workloads[0].items()}
    job = replace(job_for("", language="torch"), operation=operation, shape=shape, dtype="bf16", arch="sm_90")
    inputs = draw(operation, shape, "bf16", "normal", seed=1)
    outputs = dict(
        zip(
            (spec.name for spec in operation.outputs),
            outputs_of(operation, operation.reference, inputs, tuple(operation.scalars.values())),
            strict=True,
        )
    )
    found = bounds(job)
    assert found.inputs == tuple(tensor.nbytes for tensor in inputs)
    assert found.outputs == tuple(outputs[spec.name].nbytes for spec in operation.returned)

"""Which special values are asked follows from what the runner can tell apart."""

from contextlib import closing
from typing import cast

import pytest

from forge.lab.calls.asked_operation import AskedOperation
from forge.lab.calls.loaded_guest import LoadedGuest
from forge.lab.calls.loaded_kernel import LoadedKernel
from forge.lab.gates.specials import KINDS, kinds_of
from forge.lab.runner import GPU, INTERPRETER, PROCESSOR, Runner
from forge.operations import find_operation
from forge.sandbox.arena import Arena
from forge.sandbox.session import Session
from tests.candidates import job_for

WITHOUT_SUBNORMALS = tuple(kind for kind in KINDS if kind != "subnormal")


@pytest.mark.parametrize(
    ("name", "runner", "kinds"),
    [
        ("matmul_fp8", GPU, KINDS),
        ("matmul_fp8", PROCESSOR, KINDS),
        ("matmul_fp8", INTERPRETER, ()),
        ("matmul", INTERPRETER, WITHOUT_SUBNORMALS),
        ("rmsnorm", INTERPRETER, WITHOUT_SUBNORMALS),
        ("softmax", INTERPRETER, ("special_rows", "masked")),
    ],
)
def test_an_interpreter_isnt_asked_what_it_gets_wrong_itself(
    name: str, runner: Runner, kinds: tuple[str, ...]
) -> None:
    operation = find_operation(name)
    job = job_for("", language="torch", operation=name, shape=operation.workloads[0])
    with closing(Arena(2**20)) as arena:
        asked = AskedOperation(
            operation=operation, shape=job.shape, dtype=operation.dtypes[0], policy=job.policy, runner=runner
        )
        kernel = LoadedKernel(LoadedGuest(cast(Session, None), arena, name), asked)
        assert kinds_of(kernel) == kinds

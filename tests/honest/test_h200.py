"""The Triton kernels written for an H200 are accepted by every gate in Triton's interpreter, in every element type.

What an interpreter can't show (vectors, registers, time) is asked on the GPU.
"""

import json
from pathlib import Path

import pytest

from forge.domain.candidate import Metadata
from forge.domain.policy import Policy
from forge.domain.tensors import DType
from forge.domain.verdict import Accepted
from forge.lab.job import Job
from forge.lab.verification import examine
from forge.languages import find_language
from forge.operations import find_operation
from tests.candidates import EXAMPLES, isolation

FOLDERS = (
    *("rmsnorm", "fused_add_rmsnorm", "softmax", "layernorm"),
    *("silu_mul", "gelu_mul", "rope", "kv_cache_append"),
)
OTHER_AXES = 3
pytestmark = [pytest.mark.usefixtures("walls"), pytest.mark.slow]


def job_of(folder: Path, dtype: DType) -> Job:
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    metadata = Metadata.model_validate(json.loads(files["metadata.json"]))
    operation = find_operation(metadata.op)
    sizes = dict.fromkeys(operation.axes, OTHER_AXES)
    return Job(
        operation=operation,
        language=find_language(metadata.language),
        shape={**sizes, operation.row_axis: 4, operation.reduced_axis: 64},
        held_out=({**sizes, operation.row_axis: 6, operation.reduced_axis: 50},),
        dtype=dtype,
        policy=Policy(verify_limit_s=240, memory_limit_bytes=2**31),
        isolation=isolation(),
        files=files,
        metadata=metadata,
        entry_point=operation.name,
        interpreted=True,
    )


TYPES: tuple[DType, ...] = ("bf16", "fp16", "fp32")


@pytest.mark.parametrize(("name", "dtype"), [(name, TYPES[place % 3]) for place, name in enumerate(FOLDERS)])
def test_a_kernel_for_the_h200_is_accepted(name: str, dtype: DType) -> None:
    examined = examine(job_of(EXAMPLES / "h200" / name, dtype), progress=lambda _: None)
    assert isinstance(examined.verdict, Accepted), (examined.verdict, examined.log)
    assert not examined.findings
    assert max(errors.bound_used for errors in examined.workloads) <= 1

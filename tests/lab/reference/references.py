"""Reference files, a frozen one, and candidates for it: what several tests ask with."""

import dataclasses
import json
import random
from collections.abc import Sequence
from functools import cache

from forge.domain.candidate import Metadata
from forge.domain.own_operation import Contract, Local, Normal, Operand, Result
from forge.domain.policy import Policy
from forge.domain.tensors import DType
from forge.lab.job import Job, Progress
from forge.lab.reference.describe import Declared, SubmittedReference
from forge.lab.reference.infer import Inferred, infer
from forge.lab.reference.reference_guest import HERE, AnsweringDevice
from forge.lab.verification import OWN_TESTS_FILE
from forge.languages import find_language
from forge.pipeline.operands import parse_axes, parse_ranges
from forge.pipeline.task_shapes import parse_own_shapes
from tests.candidates import isolation

POLICY = Policy(verify_limit_s=120.0, memory_limit_bytes=2**31)
MODEL = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features, slope):
        super().__init__()
        self.norm = nn.BatchNorm1d(features)
        self.linear = nn.Linear(features, 8)
        self.slope = slope

    def forward(self, x, scale):
        return nn.functional.leaky_relu(self.linear(self.norm(x)), self.slope) * scale


def get_inputs():
    return [torch.rand(6, 16), 1.5]


def get_init_inputs():
    return [16, 0.25]
"""
AS_SOLVED = MODEL.replace("class Model", "class ModelNew")
FUNCTION = """
def kernel(x, scale, weight, bias, mean, variance, batches, out_weight, out_bias):
    import torch

    centered = x - x.mean(0)
    normal = centered / torch.sqrt((centered * centered).mean(0) + 1e-5) * weight + bias
    y = normal @ out_weight.T + out_bias
    return torch.where(y > 0, y, 0.25 * y) * scale
"""


def ask(
    source: str,
    *,
    operands: tuple[Declared, ...] = (),
    function: str = "",
    axes: Sequence[str] = (),
    ranges: Sequence[str] = (),
    further: Sequence[str] = (),
    place: AnsweringDevice = HERE,
    dtype: DType = "fp32",
    progress: Progress = lambda _: None,
) -> Inferred:
    """What is inferred of a file, or the refusal."""
    question = SubmittedReference(
        source=source.encode(),
        name="7_a_reference.py",
        dtype=dtype,
        function=function,
        operands=operands,
        axes=parse_axes(axes),
        ranges=parse_ranges(ranges),
        further=parse_own_shapes(further),
    )
    return infer(question, policy=POLICY, isolation=isolation(), rng=random.Random(1), progress=progress, place=place)


@cache
def known(source: str) -> Inferred:
    """What is inferred of a file, once for all tests that only read it: the same is drawn each time."""
    return ask(source)


def square_contract(side: int, *, error: float = 2.0**-21, local: Local | None = None) -> Contract:
    """Of a function of one operand and one result [side, side] in fp32."""
    return Contract(
        slug="square",
        source_sha256="0" * 64,
        form="function",
        entry="kernel",
        init="[]",
        seed=1,
        dtype="fp32",
        arguments=(Operand(name="x", element=None, sizes=(side, side), drawn=Normal(mean=0.0, deviation=1.0)),),
        results=(Result(element=None, sizes=(side, side), error=error, local=local),),
    )


@cache
def frozen() -> Inferred:
    """The model above."""
    return ask(MODEL)


def job_for(kernel: str, entry_point: str) -> Job:
    """Judge `kernel` against the model above, with tests of its author."""
    job = job_against(frozen(), kernel, entry_point)
    own_tests = b"def test_nothing_is_claimed():\n    pass\n"
    return dataclasses.replace(job, files={**job.files, OWN_TESTS_FILE: own_tests})


def job_against(inferred: Inferred, kernel: str, entry_point: str) -> Job:
    """Judge `kernel`, in PyTorch, against a frozen reference."""
    described = {
        "name": "a candidate",
        "op": inferred.operation.name,
        "language": "torch",
        "entry_point": entry_point,
    }
    others = dict.fromkeys(("reference.py", "bench.py"), b"pass\n")
    return Job(
        operation=inferred.operation,
        language=find_language("torch"),
        shape=inferred.contract.shape,
        held_out=inferred.held_out,
        dtype=inferred.contract.dtype,
        policy=POLICY,
        isolation=isolation(),
        files={
            **others,
            "kernel.py": kernel.encode(),
            "metadata.json": json.dumps(described).encode(),
        },
        metadata=Metadata.model_validate(described),
        entry_point=entry_point,
    )
